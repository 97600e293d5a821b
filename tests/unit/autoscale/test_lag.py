"""Rows and seconds behind, from offsets per partition."""

import json

import pytest

from headrace.core.lag import (
    Flows,
    Offsets,
    Partition,
    flows_from_json,
    flows_to_json,
    follow,
    rows_behind,
    rows_lost,
    seconds_behind,
)


def offsets(**partitions: Partition) -> Offsets:
    return Offsets(partitions)


@pytest.mark.parametrize(
    ("given", "then"),
    [
        (offsets(a=Partition(end=10, committed=4), b=Partition(end=7, committed=7)), 6),
        (offsets(a=Partition(end=10, committed=None, earliest=3)), 7),
        (offsets(a=Partition(end=10, committed=None)), None),
        (offsets(a=Partition(end=10, committed=4), b=Partition(end=7)), None),
        (offsets(a=Partition(end=10, committed=2, earliest=5)), 5),
        (offsets(a=Partition(end=3, committed=5)), 0),
        (offsets(), None),
    ],
    ids=[
        "the sum of the partitions",
        "a partition that was never read counts from its earliest offset",
        "unknown is not zero",
        "one unknown partition makes the sum unknown",
        "what is deleted cannot be read any more",
        "ahead is not less than nothing",
        "no partition at all is unknown",
    ],
)
def test_rows_behind(given, then):
    assert rows_behind(given) == then


@pytest.mark.parametrize(
    ("given", "rate", "then"),
    [
        (offsets(a=Partition(end=9, committed=9)), None, 0.0),
        (offsets(a=Partition(end=9, committed=5, unread_since=70.0)), None, 30.0),
        (
            offsets(a=Partition(end=9, committed=5, unread_since=70.0), b=Partition(end=2, committed=0)),
            2.0,
            3.0,
        ),
        (offsets(a=Partition(end=9, committed=5)), 0.0, None),
        (offsets(a=Partition(end=9)), 2.0, None),
    ],
    ids=["nothing waits", "by timestamps", "by the rate", "no rate", "unknown"],
)
def test_seconds_behind(given, rate, then):
    assert seconds_behind(given, rows_per_second=rate, now=100.0) == then


def after(*looks: Offsets, seconds: float = 60.0):
    flows, moved = Flows(), None
    for index, look in enumerate(looks):
        moved = follow(flows, look, at=index * seconds)
        flows = moved.flows
    assert moved is not None
    return moved


def test_arrival_and_the_hottest_partition():
    moved = after(
        offsets(a=Partition(end=100), b=Partition(end=0)), offsets(a=Partition(end=400), b=Partition(end=100))
    )
    assert moved.arrived == 400
    assert moved.flows.hottest_share == ("a", 0.75)


@pytest.mark.parametrize("second", [offsets(a=Partition(end=5)), offsets(b=Partition(end=500))])
def test_an_end_that_goes_back_or_a_partition_that_is_gone_is_a_reset(second):
    moved = after(offsets(a=Partition(end=100)), second)
    assert moved.reset == ("a",)
    assert moved.arrived == 0
    assert moved.flows.hottest_share is None


def test_what_a_new_partition_holds_has_arrived():
    moved = after(
        offsets(a=Partition(end=100)), offsets(a=Partition(end=110), b=Partition(end=30, earliest=10))
    )
    assert moved.added == ("b",)
    assert moved.arrived == 30


def test_partitions_that_are_added_do_not_make_the_old_ones_hot():
    few = [offsets(**{f"p{index}": Partition(end=1000 * look) for index in range(6)}) for look in range(9)]
    more = [
        offsets(
            **{f"p{index}": Partition(end=8000 + 100 * look) for index in range(6)},
            **{f"q{index}": Partition(end=100 * look, earliest=0) for index in range(42)},
        )
        # At the first look the new ones are there, and empty.
        for look in range(4)
    ]
    then = after(*few, *more[:2], seconds=15).flows
    assert then.hottest_share is not None and then.hottest_share[1] == pytest.approx(1 / 48)
    total = sum(flow.ended for flow in after(*few, more[0], seconds=15).flows.partitions.values())
    assert total == pytest.approx(sum(flow.ended for flow in then.partitions.values()), rel=0.2)


def test_rows_that_were_deleted_unread_are_counted_once():
    first = offsets(a=Partition(end=100, committed=10, earliest=0))
    second = offsets(a=Partition(end=120, committed=10, earliest=40))
    third = offsets(a=Partition(end=140, committed=10, earliest=50))
    assert rows_lost(after(first).flows, second) == 30
    assert rows_lost(after(first, second).flows, third) == 10


def test_flows_survive_json():
    flows = after(
        offsets(a=Partition(end=100, committed=3, earliest=0, unread_since=7.0)),
        offsets(a=Partition(end=400, committed=90, earliest=2, unread_since=31.0)),
    ).flows
    assert flows.partitions["a"].deletions == ((60.0, 2),)
    assert flows_from_json(json.loads(json.dumps(flows_to_json(flows)))) == flows
