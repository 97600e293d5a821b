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
    each: list[tuple[float, str]] = []
    for name, partition in offsets.partitions.items():
        flow = flows.partitions.get(name)
        # Who does not tell its first offset, like a directory, deletes nothing that we know of.
        if flow is None or partition.earliest is None or not partition.behind:
            continue
        left = _age_left(partition, now, retention_seconds)
        ageing = 1 - (flows.rate(flow.advanced) or 0.0)
        # It ages by a second per second, less the time that reading has moved on by.
        if left is not None and ageing > 0:
            each.append((left / min(ageing, 1.0), name))
        # Where age alone decides, and is known, the first offset's movement is that of a load long past.
        if left is None or deletes_by_size is not False:
            by_size = _by_size(partition, flow, flows, now, read=flow.read)
            each += [(by_size, name)] if by_size is not None else []
    return min(each, default=None)


def loss_if_stopped(
    offsets: Offsets,
    flows: Flows,
    *,
    now: float,
    retention_seconds: float | None,
    deletes_by_size: bool | None = None,
) -> tuple[float, str] | None:
    """The same if nothing is read from now on: what a job that is stopped has, however well it keeps up.

    Where nothing is unread, the next row to come has all of the retention.
    """
    each: list[tuple[float, str]] = []
    for name, partition in offsets.partitions.items():
        flow = flows.partitions.get(name)
        if flow is None or partition.earliest is None:
            continue
        left = _age_left(partition, now, retention_seconds)
        if left is not None:
            each.append((left, name))
        if left is None or deletes_by_size is not False:
            by_size = _by_size(partition, flow, flows, now, read=0.0)
            each += [(by_size, name)] if by_size is not None else []
    return min(each, default=None)


def _age_left(partition: Partition, now: float, retention_seconds: float | None) -> float | None:
    """Until the oldest unread row, or one that came now, is too old; None where age does not decide, or is
    not known."""
    since = now if partition.behind == 0 else partition.unread_since
    if retention_seconds is None or since is None:
        return None
    return max(0.0, retention_seconds - (now - since))


def _by_size(partition: Partition, flow: Flow, flows: Flows, now: float, *, read: float) -> float | None:
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
    closing = min(deleting, flows.rate(flow.ended) or 0.0) - (flows.rate(read) or 0.0)
    if closing <= 0:
        return None
    # Between two deletions nothing is seen to move: the time since the last one is spent already.
    return max(0.0, max(0, partition.committed - partition.earliest) / closing - (now - newest))
