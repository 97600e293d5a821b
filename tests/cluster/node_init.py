"""The first process of a node's namespaces: it reaps orphans, and all the node's processes end with it."""

import os
import signal
import sys


def main() -> None:
    # As pid 1 of its namespace it gets only the signals it asks for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        signal.sigwait({signal.SIGCHLD})
        while _reap_one():
            pass


def _reap_one() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


if __name__ == "__main__":
    main()
