"""What is a growing backlog, and what only looks like one: by the rows that waited for each batch."""

from __future__ import annotations

import pytest

from headrace.core.backlog import growth, usual
from headrace.core.model import QueryReport


def query(*waited: int, name: str = "q") -> QueryReport:
    return QueryReport(name=name, active=True, waited=waited)


HEALTHY = {
    "nobody knows": (),
    "one batch, of a trigger longer than the window": (9000,),
    "a long trigger: each batch finds what came meanwhile": (6000,) * 12,
    "the first batch comes soon after the handover, the next a whole trigger later": (300, *(6000,) * 11),
    "it catches up after a cold start": (90_000, 60_000, 40_000, 20_000, 9000, 6000, 6000, 6000, 6000),
    "small numbers": (10, 20, 40, 80, 160, 320, 640, 700, 900),
    "a load that rose and stays": (1000, 1000, 1000, 5000, 5000, 5000, 5000, 5000, 5000),
    "a slower version that keeps up": (1000, 1400, 1700, 2400, 2500, 2500, 2500, 2500, 2500),
    "arrivals that differ by half": (4000, 6000, 5000, 8000, 4000, 7000, 5000, 8500, 6000, 5000, 8000, 6000),
    "one peak at the end": (2000, 2100, 1900, 2000, 2000, 2100, 1900, 2000, 30_000),
    "a load that comes and goes": (500, 500, 500, 9000, 9000, 9000, 500, 500, 500),
}


@pytest.mark.parametrize("waited", HEALTHY.values(), ids=HEALTHY.keys())
def test_no_growth(waited: tuple[int, ...]):
    assert growth([query(*waited)], None) is None


FALLS_BEHIND = {
    "a limit per batch: what is left over grows": (2000, 4000, 6000, 8000, 10_000, 12_000, 14_000, 16_000),
    "no limit: each batch takes longer, and finds more": (1000, 1500, 2300, 3500, 5200, 7700, 11_500, 17_000),
    "after a gap that it never caught up": (9000, 10_000, 14_000, 19_000, 24_000, 29_000, 34_000, 39_000),
}


@pytest.mark.parametrize("waited", FALLS_BEHIND.values(), ids=FALLS_BEHIND.keys())
def test_growth(waited: tuple[int, ...]):
    found = growth([query(*waited)], None)
    assert found is not None
    assert found.proven


def test_of_several_queries_one_is_enough_and_it_is_named():
    found = growth([query(*(10,) * 9), query(*range(0, 90_000, 10_000), name="late")], None)
    assert found is not None
    assert found.message == "the rows that wait for a batch of late grew from 20000 to 70000"


def test_with_few_batches_it_is_only_a_suspicion():
    found = growth([query(100, 9000)], None)
    assert found is not None
    assert not found.proven
    assert growth([query(100, 9000, 9000)], None) is None


def test_what_usually_waited_for_the_old_version_is_no_growth():
    waited = FALLS_BEHIND["a limit per batch: what is left over grows"]
    assert growth([query(*waited)], 9000) is not None
    assert growth([query(*waited)], 14_000) is None


def test_what_is_usual():
    assert usual([]) is None
    assert usual([query(1, 2, 3)]) is None, "too few to call it usual"
    assert usual([query(5_000_000, *(6000,) * 20)]) == 6000, "its own catching up at the start is not"
    assert usual([query(*(10,) * 8), query(*(7,) * 8)]) == 17
