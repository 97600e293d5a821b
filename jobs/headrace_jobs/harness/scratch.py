"""The driver's local directory: shuffle files, local state, settings. It goes with the driver.

A driver that is killed cannot clean up, so each one sweeps what dead ones have left. A directory is in use as
long as its lock is held; the JVM holds it, too, because it may outlive a killed harness for a moment. A lock
tells more than a pid: containers that share a directory do not share their pids.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "headrace-driver-"
_LOCK = "lock"


@dataclass(frozen=True)
class Scratch:
    path: Path
    lock: int  # a descriptor, to be passed on to the JVM

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def make_scratch(parent: Path | None = None) -> Scratch:
    """A fresh directory that only this user can read."""
    parent = parent or Path(tempfile.gettempdir())
    sweep(parent)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return Scratch(path, lock)


def sweep(parent: Path) -> None:
    """Removes the directories of drivers that are gone. One without a lock file is just being made."""
    for path in parent.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(path / _LOCK, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
        else:
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
