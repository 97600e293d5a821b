"""Long-running programs: started with a log, waited for, and ended by pid, never by name."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class NotReadyError(Exception):
    """A program did not come up in time, or ended early. The message carries the end of its log."""


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for another one that got its pid later."""

    name: str
    pid: int
    started_at_ticks: int

    @classmethod
    def of_pid(cls, name: str, pid: int) -> "Process":
        seen = _state_and_start(pid)
        if seen is None:
            raise NotReadyError(f"{name}: there is no process {pid}")
        return cls(name, pid, seen[1])

    def alive(self) -> bool:
        match _state_and_start(self.pid):
            case ("Z" | "X", self.started_at_ticks):
                # It has ended, whoever still has to reap it.
                _reap(self.pid)
                return False
            case (_, self.started_at_ticks):
                return True
            case _:
                return False

    def end(self, *, patience_seconds: float = 10.0) -> None:
        """Asks, then insists."""
        for what, patience in ((signal.SIGTERM, patience_seconds), (signal.SIGKILL, 5.0)):
            if not self.alive():
                return
            try:
                os.kill(self.pid, what)
            except ProcessLookupError:
                return
            wait_until(lambda: not self.alive(), seconds=patience)


def start(name: str, command: list[str], *, log: Path, environment: dict[str, str] | None = None) -> Process:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    return Process.of_pid(name, child.pid)


def wait_until(condition: Callable[[], bool], *, seconds: float, every: float = 0.05) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        if condition():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(every)


def wait_ready(process: Process, ready: Callable[[], bool], *, log: Path, seconds: float) -> None:
    wait_until(lambda: ready() or not process.alive(), seconds=seconds)
    if not process.alive():
        raise NotReadyError(f"{process.name} ended while it was starting. End of {log}:\n{tail(log)}")
    if not ready():
        raise NotReadyError(f"{process.name} was not ready after {seconds:.0f} s. End of {log}:\n{tail(log)}")


def tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else "(no log)"


def _state_and_start(pid: int) -> tuple[str, int] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name stands in brackets and may contain anything, brackets included.
    state, *fields = stat.rpartition(")")[2].split()
    return state, int(fields[18])


def _reap(pid: int) -> None:
    # When it is not a child of ours, its own parent reaps it.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
