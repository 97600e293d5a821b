"""The ways to ask a driver to end from outside: signals, and the parent's pipe."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading

from headrace_jobs.harness.conductor import Conductor
from headrace_jobs.harness.endings import PARENT_GONE_DRAIN_SECONDS, DrainRequested

log = logging.getLogger("headrace")

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def listen_for_signals(conductor: Conductor, drain_seconds: float) -> None:
    """The first signal drains, the second one ends the driver at once. From the main thread only.

    Signals are read from a descriptor instead of handled in Python: user code may set handlers of its own,
    or keep the main thread busy, and the drain must begin all the same.
    """
    written, read = socket.socketpair()
    written.setblocking(False)
    signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    take_signals()
    reader = threading.Thread(
        target=_read_signals,
        args=(read, written, conductor, drain_seconds),
        name="headrace-signals",
        daemon=True,
    )
    reader.start()


def take_signals() -> None:
    """Handlers that do nothing; the descriptor tells. Again after Spark's context, which takes SIGINT."""
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)


def _read_signals(
    read: socket.socket, _keep_open: socket.socket, conductor: Conductor, drain_seconds: float
) -> None:
    asked = False
    while True:
        for number in read.recv(16):
            if number not in _SIGNALS:
                continue
            name = signal.Signals(number).name
            if asked:
                log.warning("a second signal (%s): the driver ends at once", name)
                conductor.hurry()
            else:
                asked = True
                conductor.tell(DrainRequested(f"{name} was received", drain_seconds))


def watch_parent(conductor: Conductor, drain_seconds: float) -> None:
    """Drains when the other end of the pipe on standard input is closed, which a killed parent does, too."""
    pipe = os.dup(sys.stdin.fileno())
    os.set_inheritable(pipe, False)
    # User code and its children must not hold, or read, the parent's pipe.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)

    def read_to_the_end() -> None:
        while os.read(pipe, 4096):
            pass
        limit = min(drain_seconds, PARENT_GONE_DRAIN_SECONDS)
        conductor.tell(DrainRequested("the parent process is gone", limit))

    threading.Thread(target=read_to_the_end, name="headrace-parent", daemon=True).start()
