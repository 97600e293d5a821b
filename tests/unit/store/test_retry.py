from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from headrace_jobs.store.retry import RetryPolicy, TransientError, with_retries


@dataclass
class FakeTime:
    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class GivenUpError(Exception):
    pass


def failing(times: int, time: FakeTime, cost_seconds: float = 0.0):
    def operation(failures: int) -> int:
        time.now += cost_seconds
        if failures < times:
            raise TransientError(GivenUpError(f"failed {failures + 1} times"))
        return failures

    return operation


def test_a_success_is_not_repeated() -> None:
    time = FakeTime()
    assert with_retries(failing(0, time), RetryPolicy(), clock=time.clock, sleep=time.sleep) == 0
    assert time.slept == []


def test_the_pauses_double_up_to_the_longest_and_are_random_as_a_whole() -> None:
    time = FakeTime()
    policy = RetryPolicy(deadline_seconds=60, first_delay_seconds=0.5, longest_delay_seconds=4)
    assert with_retries(failing(6, time), policy, clock=time.clock, sleep=time.sleep, jitter=lambda: 1.0) == 6
    assert time.slept == [0.5, 1, 2, 4, 4, 4]
    time = FakeTime()
    with_retries(failing(3, time), policy, clock=time.clock, sleep=time.sleep, jitter=lambda: 0.0)
    assert time.slept == [0, 0, 0]


def test_at_the_deadline_the_real_error_is_raised() -> None:
    time = FakeTime()
    policy = RetryPolicy(deadline_seconds=10, first_delay_seconds=1, longest_delay_seconds=100)
    with pytest.raises(GivenUpError, match="failed 4 times"):
        with_retries(failing(99, time), policy, clock=time.clock, sleep=time.sleep, jitter=lambda: 1.0)
    assert time.slept == [1, 2, 4]
    assert time.now < 100 + 10


def test_slow_tries_count_against_the_deadline() -> None:
    time = FakeTime()
    policy = RetryPolicy(deadline_seconds=10, first_delay_seconds=0.1)
    with pytest.raises(GivenUpError, match="failed 3 times"):
        with_retries(failing(99, time, cost_seconds=4), policy, clock=time.clock, sleep=time.sleep)


def test_other_errors_pass_at_once() -> None:
    def broken(_: int) -> None:
        raise KeyError("a fault of ours")

    with pytest.raises(KeyError):
        with_retries(broken, RetryPolicy(), sleep=lambda _: pytest.fail("must not wait"))
