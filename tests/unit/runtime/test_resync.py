"""The resync: now and then everything is listed and every job looked at, and never all at the same time."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.kube.cache import CACHED, SavepointKey
from headrace.runtime import operator as runtime
from headrace.runtime.operator import Operator

PERIOD = 600.0
NOW = 5000.0


class Stopped(Exception):
    pass


def resynced(monkeypatch: pytest.MonkeyPatch, rounds: int) -> tuple[list[float], list[str], dict[Any, list]]:
    """How long it slept before each round, which kinds were listed, and when who is to be looked at."""
    sleeps: list[float] = []
    listed: list[str] = []
    woken: dict[Any, list[float]] = {}

    async def sleep(seconds: float) -> None:
        if len(sleeps) == rounds:
            raise Stopped
        sleeps.append(seconds)

    monkeypatch.setattr(runtime.asyncio, "sleep", sleep)
    monkeypatch.setattr(runtime.time, "monotonic", lambda: NOW)
    jobs = [("shop", f"job-{number}") for number in range(200)]
    cache = SimpleNamespace(jobs=lambda: jobs, savepoints=lambda: [SavepointKey("shop", "nightly")])
    own: Any = SimpleNamespace(
        options=SimpleNamespace(resync_seconds=PERIOD),
        reconciler=SimpleNamespace(cache=cache),
        workers=SimpleNamespace(wake_at=lambda key, when: woken.setdefault(key, []).append(when)),
    )
    relists: Any = SimpleNamespace(ask=listed.append)
    with pytest.raises(Stopped):
        asyncio.run(Operator._resync(own, relists))
    return sleeps, listed, woken


def test_every_kind_is_listed_and_every_object_looked_at_in_every_round(monkeypatch: pytest.MonkeyPatch):
    _, listed, woken = resynced(monkeypatch, rounds=3)
    assert sorted(listed) == sorted([one.plural for one in CACHED] * 3)
    assert len(woken) == 201
    assert all(len(times) == 3 for times in woken.values())


def test_rounds_are_spread_around_the_period(monkeypatch: pytest.MonkeyPatch):
    """Else operators of one rollout would list together for ever."""
    sleeps, _, _ = resynced(monkeypatch, rounds=50)
    assert all(0.9 * PERIOD <= seconds <= 1.1 * PERIOD for seconds in sleeps)
    assert max(sleeps) - min(sleeps) > 0.05 * PERIOD


def test_jobs_are_spread_over_half_of_it(monkeypatch: pytest.MonkeyPatch):
    _, _, woken = resynced(monkeypatch, rounds=1)
    waits = sorted(times[0] - NOW for times in woken.values())
    assert waits[0] >= 0 and waits[-1] <= PERIOD / 2
    widest = max(later - sooner for sooner, later in pairwise(waits))
    assert widest < PERIOD / 10
