"""The command: reads the run file and the token, and hands over to the driver."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from pathlib import Path

from headrace_jobs.harness.driver import Driver
from headrace_jobs.harness.runfile import RunFile, RunFileInvalid, read_run_file
from headrace_jobs.harness.tail import keep_log
from headrace_jobs.harness.termination import Reason

_TOKEN_VARIABLE = "HEADRACE_AGENT_TOKEN"  # noqa: S105 - its name, not its value


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m headrace_jobs.harness", description="Runs one attempt of a job: the driver process."
    )
    parser.add_argument("--run-file", type=Path, required=True, help="what to run; written by the operator")
    arguments = parser.parse_args(argv)
    keeper = keep_log()
    print_whole_lines()
    _log_to_stderr()
    log = logging.getLogger("headrace")
    try:
        run_file = read_run_file(arguments.run_file)
        driver = Driver(run_file, _read_token(run_file), keeper)
    except RunFileInvalid as problem:
        log.error("%s: %s", arguments.run_file, problem)  # noqa: TRY400
    except Exception:
        log.exception("the driver could not begin")
    else:
        return driver.run()
    if keeper is not None:
        keeper.finish()  # with us the whole container ends, and with it whoever passes the log on
    return Reason.INTERNAL_ERROR.exit_code


def print_whole_lines() -> None:
    """Unbuffered, each argument of a print is a write of its own, and the JVM's lines come in between."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)


def _read_token(run_file: RunFile) -> str:
    # Taken out of the environment: the JVM, Python workers and the user's children have no use for it.
    token = os.environ.pop(_TOKEN_VARIABLE, "")
    if run_file.agent.token_file is not None:
        try:
            token = Path(run_file.agent.token_file).read_text(encoding="utf-8")
        except OSError as error:
            raise RunFileInvalid(f"agent.tokenFile: cannot be read: {error.strerror}") from None
    if not token.strip():
        raise RunFileInvalid(f"agent: no token; set {_TOKEN_VARIABLE} or agent.tokenFile")
    return token.strip()


def _log_to_stderr() -> None:
    """A logger of our own: the root logger belongs to the user's code."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s headrace %(levelname)s: %(message)s"))
    log = logging.getLogger("headrace")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
