"""How the cluster speaks to the person who waits for it."""

import sys
import time


class MissingError(Exception):
    """Something this machine lacks. The message says what, and how to get it."""


def say(text: str) -> None:
    sys.stderr.write(f"[cluster] {text}\n")
    sys.stderr.flush()


class Progress:
    """One line that moves on a terminal; a line now and then in a log."""

    LOG_EVERY_SECONDS = 20.0

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = max(total, 1)
        self._done = 0
        self._spoke_at = time.monotonic()
        self._live = sys.stderr.isatty()

    def step(self) -> None:
        self._done = min(self._done + 1, self._total)
        if self._live:
            sys.stderr.write(f"\r[cluster] {self._text()}\033[K")
            sys.stderr.flush()
        elif time.monotonic() - self._spoke_at > self.LOG_EVERY_SECONDS:
            self._spoke_at = time.monotonic()
            say(self._text())

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\r\033[K")

    def _text(self) -> str:
        return f"{self._label}: {self._done}/{self._total} packages ({self._done * 100 // self._total}%)"
