"""The time until the source deletes what was not read: early rather than late, and never by a false alarm."""

from dataclasses import dataclass

import pytest

from headrace.core.lag import Flows, Offsets, Partition, follow
from headrace.core.lag_loss import loss_if_stopped, time_to_data_loss

HOUR = 3600.0
LOOK_SECONDS = 15.0


@dataclass
class Topic:
    """One partition of steady load: its source deletes when it is told to, its reader reads when it is."""

    rows_per_second: float = 1.0
    end: float = 100_000.0
    committed: float = 100_000.0
    earliest: float = 0.0
    retention_seconds: float | None = None
    deletes_by_size: bool | None = None
    timestamps: bool = True
    now: float = 0.0
    flows: Flows = Flows()  # noqa: RUF009 (it is frozen)

    def run(self, seconds: float, *, reads: float = 1.0, deletes: float = 0.0) -> float | None:
        """Looks while so much of what arrives is read and deleted; the last answer."""
        until = self.now + seconds
        while self.now < until:
            self.now += LOOK_SECONDS
            arrived = LOOK_SECONDS * self.rows_per_second
            self.end += arrived
            self.committed = min(self.end - 1, self.committed + reads * arrived)
            self.earliest += deletes * arrived
            self.look()
        return self.left

    def delete(self, rows: float) -> float | None:
        """A whole segment."""
        self.earliest += rows
        self.now += LOOK_SECONDS
        self.look()
        return self.left

    def look(self) -> None:
        self.flows = follow(self.flows, self.offsets, at=self.now).flows

    @property
    def offsets(self) -> Offsets:
        written = self.now - (self.end - self.committed) / self.rows_per_second
        return Offsets(
            {
                "a": Partition(
                    end=round(self.end),
                    committed=round(self.committed),
                    earliest=round(self.earliest),
                    unread_since=written if self.timestamps else None,
                )
            }
        )

    def if_stopped(self) -> float | None:
        found = loss_if_stopped(
            self.offsets,
            self.flows,
            now=self.now,
            retention_seconds=self.retention_seconds,
            deletes_by_size=self.deletes_by_size,
        )
        return None if found is None else found[0]

    @property
    def left(self) -> float | None:
        found = time_to_data_loss(
            self.offsets,
            self.flows,
            now=self.now,
            retention_seconds=self.retention_seconds,
            deletes_by_size=self.deletes_by_size,
        )
        return None if found is None else found[0]


@pytest.mark.parametrize(
    ("reads", "then"),
    [
        (0.0, 3 * HOUR),  # stands still: the oldest row has three of ten hours left
        (0.5, 6 * HOUR),  # reads half of what arrives: ages half as fast
        (1.0, None),  # keeps up: never
        (1.5, None),
    ],
)
def test_by_age(reads, then):
    topic = Topic(committed=100_000 - 6 * HOUR, retention_seconds=10 * HOUR)
    topic.run(HOUR, reads=reads)
    # After that hour seven hours are unread if nothing was read, and accordingly less.
    expected = None if then is None else then + HOUR * reads / (1 - reads)
    assert topic.left == (None if expected is None else pytest.approx(expected, rel=0.01))


def test_rows_of_a_busy_day_go_as_fast_as_they_came_however_little_comes_now():
    # Twice what arrives is read, but of a time at which ten times as much came.
    flows, written = Flows(), -9 * HOUR
    for look in range(40):
        at = look * LOOK_SECONDS
        written += 0.2 * LOOK_SECONDS
        partition = Partition(
            end=900_000 + round(at), committed=round(2 * at), earliest=0, unread_since=written
        )
        flows = follow(flows, Offsets({"a": partition}), at=at).flows
    found = time_to_data_loss(Offsets({"a": partition}), flows, now=at, retention_seconds=10 * HOUR)
    assert found is not None and 0.9 * HOUR < found[0] < 1.3 * HOUR


@pytest.mark.parametrize("known", [None, False, True])
def test_a_source_that_deletes_a_segment_is_no_danger(known):
    """A day is kept, a segment is nearly three hours: each deletion moves the first offset by all of it."""
    topic = Topic(retention_seconds=24 * HOUR if known is not None else None, deletes_by_size=known)
    topic.earliest = topic.committed - 86_400
    for _ in range(5):
        topic.run(10_000 - LOOK_SECONDS)
        assert topic.delete(10_000) is None or topic.left > 20 * HOUR
        # A batch of ten minutes, during which nothing is committed.
        stands_still = topic.run(600, reads=0.0)
        assert stands_still is None or stands_still > 4 * HOUR
        topic.committed = topic.end


@pytest.mark.parametrize("known", [None, False])
def test_after_a_busy_day_the_source_may_delete_faster_than_is_read(known):
    """By age, what goes is what came four hours ago. What comes now is read at once."""
    topic = Topic(
        rows_per_second=0.1, retention_seconds=4 * HOUR if known is False else None, deletes_by_size=known
    )
    topic.earliest = topic.committed - 1800
    topic.run(1200, deletes=10.0)
    assert topic.left is None or topic.left > 4 * HOUR


def test_a_source_that_deletes_by_size_deletes_what_was_not_read():
    topic = Topic(deletes_by_size=True, timestamps=False)
    topic.earliest = topic.committed - 20_000
    for _ in range(3):
        topic.run(1800 - LOOK_SECONDS)
        topic.delete(1800)
    # Nothing is read any more: of 20,000 rows 3,600 are unread, and one per second goes.
    left = topic.run(3600, reads=0.0, deletes=1.0)
    assert left is not None and 14_000 < left < 18_000


def test_segments_go_at_once_so_the_answer_is_early():
    topic = Topic(deletes_by_size=True, timestamps=False)
    topic.earliest = topic.committed - 4000
    for _ in range(4):
        topic.run(1800 - LOOK_SECONDS)
        topic.delete(1800)
    read, until = topic.committed - topic.earliest, topic.now
    left = topic.run(1200, reads=0.0)
    # After two more segments, the first unread row is among what is gone.
    assert read == pytest.approx(4000, abs=100)
    assert left is not None and left <= until + 3 * 1800 - topic.now


def test_one_or_two_deletions_tell_nothing():
    topic = Topic()
    topic.earliest = topic.committed - 2000
    topic.run(300)
    topic.delete(500)
    topic.run(300)
    assert topic.delete(500) is None
    assert topic.run(300, reads=0.0) is None


def test_a_source_that_stopped_deleting_is_no_danger():
    """A quiet night has emptied the topic. In the morning the first batch takes a while."""
    topic = Topic()
    topic.earliest = topic.committed - 4000
    for _ in range(4):
        topic.run(600)
        topic.delete(900)
    topic.run(4 * HOUR)
    assert topic.run(600, reads=0.0) is None


@pytest.mark.parametrize(
    ("reads", "then"), [(1.0, 10 * HOUR), (0.0, 9 * HOUR)], ids=["keeps up", "has stood still for an hour"]
)
def test_a_job_that_stops_has_what_is_left_of_the_retention(reads, then):
    topic = Topic(retention_seconds=10 * HOUR, deletes_by_size=False)
    topic.run(HOUR, reads=reads)
    found = topic.if_stopped()
    assert found == pytest.approx(then, abs=60)
    topic.committed = topic.end
    assert topic.if_stopped() == 10 * HOUR


def test_a_job_that_stops_loses_what_a_full_source_deletes():
    topic = Topic(deletes_by_size=True, timestamps=False)
    topic.earliest = topic.committed - 20_000
    assert topic.if_stopped() is None
    topic.run(1200, deletes=1.0)
    assert topic.left is None
    assert topic.if_stopped() == pytest.approx(20_000, rel=0.1)


def test_a_directory_deletes_nothing_whatever_the_topic_beside_it_keeps():
    files = Offsets({"files/0": Partition(end=9, committed=4, unread_since=0.0)})
    flows = follow(follow(Flows(), files, at=0.0).flows, files, at=60.0).flows
    assert time_to_data_loss(files, flows, now=HOUR, retention_seconds=60.0) is None


def test_nothing_unread_cannot_be_lost():
    look = Offsets({"a": Partition(end=10, committed=10, earliest=9, unread_since=0.0)})
    flows = follow(follow(Flows(), look, at=0.0).flows, look, at=60.0).flows
    assert time_to_data_loss(look, flows, now=60.0, retention_seconds=1.0) is None
