"""A lookout: it looks, and says when there is work, and when it cannot tell."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from headrace_jobs.harness.offsets import LookFailed
from headrace_jobs.harness.source_notes import NotNoted
from headrace_jobs.lookout.watch import PATIENCE_SECONDS, Seen, Watch
from headrace_jobs.store.errors import UnavailableError

NOTHING = Seen()
WORK = Seen(work="7 rows wait")
AWAY = LookFailed("Kafka does not tell its offsets")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


def watched(looks: Iterable[Seen | Exception], *, every: float = 60.0) -> tuple[dict[str, str], Clock]:
    clock, coming = Clock(), iter(looks)

    def look() -> Seen:
        found = next(coming)
        if isinstance(found, Exception):
            raise found
        return found

    words = Watch(look=look, every_seconds=every, clock=lambda: clock.now, sleep=clock.sleep).run()
    return words, clock


def test_it_looks_until_there_is_work():
    words, clock = watched([NOTHING, NOTHING, NOTHING, WORK])
    assert words == {"reason": "Work", "message": "7 rows wait"}
    assert clock.pauses == [60, 60, 60]


def test_a_broker_that_is_away_for_a_moment_is_not_worth_a_word():
    words, _ = watched([NOTHING, AWAY, AWAY, AWAY, NOTHING, AWAY, AWAY, WORK])
    assert words["reason"] == "Work"


@pytest.mark.parametrize("problem", [AWAY, UnavailableError("the store", "it does not answer")])
@pytest.mark.parametrize("every", [10.0, 60.0, 3600.0])
def test_who_cannot_look_for_minutes_is_blind(problem: Exception, every: float):
    words, clock = watched([NOTHING, *([problem] * 1000)], every=every)
    assert words["reason"] == "Blind"
    assert str(problem) in words["message"]
    failing = sum(clock.pauses[1:])
    assert PATIENCE_SECONDS <= failing <= PATIENCE_SECONDS + 60


def test_where_rows_are_kept_for_minutes_it_looks_sooner_and_gives_up_sooner():
    shortly = Seen(retention_seconds=120.0)
    words, clock = watched([shortly, shortly, *([AWAY] * 100)], every=600.0)
    assert words["reason"] == "Blind"
    assert clock.pauses[:2] == [30, 30]
    assert sum(clock.pauses[2:]) <= 90


def test_sources_that_were_never_noted_are_not_waited_for():
    words, clock = watched([NotNoted("the driver has left no note of its sources")])
    assert words == {"reason": "Blind", "message": "the driver has left no note of its sources"}
    assert clock.pauses == []
