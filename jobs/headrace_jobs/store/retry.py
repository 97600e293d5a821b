"""Trying again: exponential backoff with full jitter, up to a deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


class TransientError(Exception):
    """Raised by an operation to be tried again; carries the error to give up with."""

    def __init__(self, final: Exception) -> None:
        super().__init__(str(final))
        self.final = final


@dataclass(frozen=True)
class RetryPolicy:
    deadline_seconds: float = 60.0
    first_delay_seconds: float = 0.1
    longest_delay_seconds: float = 5.0

    def delay_seconds(self, failures: int, jitter: float) -> float:
        """`jitter` in [0, 1): all of the delay is random, so that many clients do not come back at once."""
        ceiling = min(self.longest_delay_seconds, self.first_delay_seconds * 2.0 ** min(failures, 30))
        return ceiling * jitter


def with_retries(
    operation: Callable[[int], Result],
    policy: RetryPolicy,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    jitter: Callable[[], float] = random.random,
) -> Result:
    """Calls `operation(number of failures so far)` until it returns, raises, or the deadline would pass."""
    deadline = clock() + policy.deadline_seconds
    failures = 0
    while True:
        try:
            return operation(failures)
        except TransientError as error:
            delay = policy.delay_seconds(failures, jitter())
            failures += 1
            if clock() + delay >= deadline:
                raise error.final from error.__cause__
        sleep(delay)
