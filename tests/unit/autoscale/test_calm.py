"""Who acts less often than the autoscaler, and whether that means anything."""

import pytest
from bench.autoscale.contest import Entry, Spread, calmer, dominating, least_fixed

from headrace.simulate.run import Result


def an_entry(name: str, *, late: float, actions: float, hours: float = 10.0) -> Entry:
    return Entry(
        scaler=name,
        results=[],
        cost_over_oracle=Spread(hours / 5, 0.0),
        executor_hours=Spread(hours, 0.0),
        over_objective_pct=Spread(late, 0.0),
        lag_p99_seconds=Spread(0.0, 0.0),
        actions_per_hour=Spread(actions, 0.0),
        data_loss_events=0,
        recovery_seconds=None,
    )


def entries_with(peer: Entry) -> dict[str, Entry]:
    """Ours acts three times an hour; of the fixed numbers, 18 hours are the fewest that do."""
    each = (
        an_entry("oracle", late=0.0, actions=0.0, hours=5.0),
        an_entry("headrace", late=0.0, actions=3.0),
        an_entry("static-peak", late=0.0, actions=0.0, hours=20.0),
        an_entry("static-least", late=0.4, actions=0.0, hours=18.0),
        peer,
    )
    return {one.scaler: one for one in each}


@pytest.mark.parametrize(
    ("peer", "is_calmer", "at_any_cost"),
    [
        ({"late": 0.0, "actions": 1.0}, True, True),
        ({"late": 0.5, "actions": 1.0, "hours": 17.9}, True, True),
        ({"late": 0.0, "actions": 1.0, "hours": 18.0}, False, True),
        ({"late": 0.0, "actions": 1.0, "hours": 99.0}, False, True),
        ({"late": 0.6, "actions": 1.0}, False, False),
        ({"late": 0.0, "actions": 3.0}, False, False),
    ],
    ids=[
        "fewer actions",
        "fewer, and a little saved",
        "fewer, for the price of a fixed number",
        "fewer, at the maximum",
        "fewer, but late",
        "as many",
    ],
)
def test_a_peer_is_calmer_that_keeps_the_objective_and_saves_with_fewer_actions(peer, is_calmer, at_any_cost):
    entries = entries_with(an_entry("peer", **peer))
    assert (calmer(entries) == ["peer"]) is is_calmer
    assert (calmer(entries, at_any_cost=True) == ["peer"]) is at_any_cost


def test_a_number_that_is_known_afterwards_dominates_nobody():
    entries = entries_with(an_entry("peer", late=0.0, actions=3.0, hours=12.0))
    entries["static-least"] = an_entry("static-least", late=0.0, actions=0.0, hours=9.0)
    assert dominating(entries) == []


def a_result(number: int, late: float) -> Result:
    return Result(
        scaler="static-least",
        hours=1.0,
        executor_hours=float(number),
        over_objective_pct=late,
        lag_p50_seconds=0.0,
        lag_p99_seconds=0.0,
        lag_max_seconds=0.0,
        actions_per_hour=0.0,
        data_loss_events=0,
        recovery_seconds=None,
        points=(),
    )


@pytest.mark.parametrize(
    ("enough", "found"),
    [(9, 9), (7, 7), (12, 12), (1, 1), (99, 20)],
    ids=["the one for the peak", "fewer do", "more are needed", "one does", "none does"],
)
def test_the_least_fixed_number_that_keeps_the_objective_is_found_from_any_start(enough, found):
    def play(number: int) -> list[Result]:
        # Late on average counts: one seed of two may be beyond it.
        return [a_result(number, 0.0), a_result(number, 0.9 if number >= enough else 1.1)]

    results = least_fixed(play, start=9, numbers=range(1, 21))
    assert [one.executor_hours for one in results] == [found, found]
