"""Rows, seconds, and the time until the source deletes what was not read."""

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
    time_to_data_loss,
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


HOUR = 3600.0


def falling_behind(*, read: int, arrived: int, unread_since: float | None = None, earliest: tuple[int, int]):
    """Two looks a minute apart at a partition of which 1,000 rows were read at the first."""
    second = offsets(
        a=Partition(
            end=9000 + arrived, committed=1000 + read, earliest=earliest[1], unread_since=unread_since
        )
    )
    moved = after(offsets(a=Partition(end=9000, committed=1000, earliest=earliest[0])), second)
    return second, moved.flows


@pytest.mark.parametrize(
    ("read", "arrived", "then"),
    [
        (0, 600, 3 * HOUR),  # stands still: the oldest row has three of ten hours left
        (300, 600, 6 * HOUR),  # reads half of what arrives: ages half as fast
        (600, 600, None),  # keeps up: never
        (900, 600, None),
        (0, 0, 3 * HOUR),
        (100, 0, None),
    ],
)
def test_time_to_data_loss_by_age(read, arrived, then):
    now, written = 7 * HOUR, 0.0
    second, flows = falling_behind(read=read, arrived=arrived, unread_since=written, earliest=(0, 0))
    found = time_to_data_loss(second, flows, now=now, retention_seconds=10 * HOUR)
    assert found == (None if then is None else (pytest.approx(then), "a"))


def test_time_to_data_loss_by_size():
    # The earliest offset gains 10 rows/s on what is read, and is 700 rows behind it.
    second, flows = falling_behind(read=0, arrived=600, earliest=(-300, 300))
    assert time_to_data_loss(second, flows, now=60.0, retention_seconds=None) == (pytest.approx(70.0), "a")


def test_nothing_unread_cannot_be_lost():
    look = offsets(a=Partition(end=10, committed=10, earliest=9, unread_since=0.0))
    assert time_to_data_loss(look, after(look, look).flows, now=60.0, retention_seconds=1.0) is None


def test_rows_that_were_deleted_unread_are_counted_once():
    first = offsets(a=Partition(end=100, committed=10, earliest=0))
    second = offsets(a=Partition(end=120, committed=10, earliest=40))
    third = offsets(a=Partition(end=140, committed=10, earliest=50))
    assert rows_lost(after(first).flows, second) == 30
    assert rows_lost(after(first, second).flows, third) == 10


def test_flows_survive_json():
    flows = after(
        offsets(a=Partition(end=100, committed=3)), offsets(a=Partition(end=400, committed=90))
    ).flows
    assert flows_from_json(json.loads(json.dumps(flows_to_json(flows)))) == flows
