"""When a source will delete rows that were not read. Pure.

Sources delete by age, by size, or both, and Kafka deletes whole segments: its first offset stands still for
hours and then jumps. So its speed over minutes says nothing. By age the rows' own timestamps tell; by size
several deletions have to be seen before anything is said.
"""

from __future__ import annotations

from headrace.core.lag import Flow, Flows, Offsets, Partition

# With fewer deletions seen nobody knows how often the source deletes, nor how much at once.
FEWEST_DELETIONS = 3
# No deletion for this many of their usual intervals: the source has stopped deleting, for now.
INTERVALS = 2.0


def time_to_data_loss(
    offsets: Offsets,
    flows: Flows,
    *,
    now: float,
    retention_seconds: float | None,
    deletes_by_size: bool | None = None,
) -> tuple[float, str] | None:
    """Seconds until the source deletes a row that was not read, and the partition; None if it will not.

    `deletes_by_size` is None where nobody may read the source's settings. Whole segments go when their newest
    row is due, so the answer by age is early rather than late.
    """
    soonest: tuple[float, str] | None = None
    for name, partition in offsets.partitions.items():
        flow = flows.partitions.get(name)
        # Who does not tell its first offset, like a directory, deletes nothing that we know of.
        if flow is None or partition.earliest is None or not partition.behind:
            continue
        by_age = _by_age(partition, flow, flows, now, retention_seconds)
        aged = retention_seconds is not None and partition.unread_since is not None
        # Where age alone decides, and is known, the first offset's movement is that of a load long past.
        by_size = None if aged and deletes_by_size is False else _by_size(partition, flow, flows, now)
        for left in (by_age, by_size):
            if left is not None and (soonest is None or left < soonest[0]):
                soonest = (left, name)
    return soonest


def _by_age(
    partition: Partition, flow: Flow, flows: Flows, now: float, retention_seconds: float | None
) -> float | None:
    """The oldest unread row ages by a second per second, less the time that reading has moved on by."""
    if retention_seconds is None or partition.unread_since is None:
        return None
    left = max(0.0, retention_seconds - (now - partition.unread_since))
    ageing = 1 - (flows.rate(flow.advanced) or 0.0)
    return left / min(ageing, 1.0) if ageing > 0 else None


def _by_size(partition: Partition, flow: Flow, flows: Flows, now: float) -> float | None:
    """The first offset runs after what is read.

    A source that is full deletes as fast as rows arrive; one that deletes by age, as fast as they once did.
    Which one it is need not be known: the slower of both is sure.
    """
    if partition.earliest is None or partition.committed is None or len(flow.deletions) < FEWEST_DELETIONS:
        return None
    (since, first), (newest, _) = flow.deletions[0], flow.deletions[-1]
    interval = (newest - since) / (len(flow.deletions) - 1)
    if now - newest > INTERVALS * interval:
        return None
    deleting = (partition.earliest - first) / (now - since)
    closing = min(deleting, flows.rate(flow.ended) or 0.0) - (flows.rate(flow.read) or 0.0)
    if closing <= 0:
        return None
    # Between two deletions nothing is seen to move: the time since the last one is spent already.
    return max(0.0, max(0, partition.committed - partition.earliest) / closing - (now - newest))
