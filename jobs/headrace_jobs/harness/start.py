"""Where a query begins that has no checkpoint yet: what `spec.startFrom` says of it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from headrace_jobs.harness.rules import StartRefused
from headrace_jobs.harness.runfile import Start
from headrace_jobs.store.seed import Seed

# What Spark's Kafka source looks at, in this order. Names in small letters, as Spark keeps them.
_STARTING_TIMESTAMP = "startingtimestamp"
_BY_TIMESTAMP = "startingoffsetsbytimestamp"
_STRATEGY = "startingoffsetsbytimestampstrategy"
_STARTING_OFFSETS = "startingoffsets"
OWNED = (_STARTING_TIMESTAMP, _BY_TIMESTAMP, _STRATEGY, _STARTING_OFFSETS)


def check_seed(seed: Seed | None, query: str) -> None:
    """A query that is not in what the job begins with would begin from nothing, and nobody would notice."""
    if seed is None or not seed.binding or query in seed.batches:
        return
    raise StartRefused(
        f"the job starts from {seed.from_run}, which holds the queries {_listed(seed.batches)} and none of "
        f"the name {query}: it would begin from nothing. Give it the name that it has there; a query that is "
        "new is added by an edit, once the job has begun"
    )


def check_source(start: Start, query: str, source: str, *, can_start: bool) -> None:
    if can_start:
        return
    what = "a time" if start.timestamp_millis is not None else "offsets"
    raise StartRefused(
        f"query {query} reads {source}, which cannot start at {what}; Kafka can. Say spec.startFrom "
        "{none: true}, and where to begin in the options of the source"
    )


def kafka_options(start: Start, query: str, given: Mapping[str, str]) -> dict[str, str]:
    """The options about its beginning that one Kafka reader gets instead of its own.

    `given` are all its options, by names in small letters. What the manifest says is stronger than the code.
    """
    if start.timestamp_millis is not None:
        # A partition that has nothing since then: whatever comes next is newer.
        return {_STARTING_TIMESTAMP: str(start.timestamp_millis), _STRATEGY: "latest"}
    offsets = start.offsets or {}
    if query not in offsets:
        raise StartRefused(
            f"spec.startFrom.offsets says nothing of query {query}; it names {_listed(offsets)}. Add it, or "
            "correct the name"
        )
    topics = {topic: parts for topic, parts in offsets[query].items() if _reads(given, topic)}
    missing = _named_topics(given) - topics.keys()
    if missing or not topics:
        raise StartRefused(
            f"spec.startFrom.offsets.{query} says nothing of {_listed(missing) or 'the topics that it reads'}"
            ": a query that starts at offsets needs them for every partition of every topic (-2 is the "
            "earliest, -1 the latest)"
        )
    return {_STARTING_OFFSETS: json.dumps(topics)}


def check_topics(start: Start, query: str, readers: Iterable[Mapping[str, str]]) -> None:
    """Offsets of a topic that nobody reads are a mistake: mostly in its name."""
    readers = list(readers)
    for topic in (start.offsets or {}).get(query, {}):
        if not any(_reads(given, topic) for given in readers):
            raise StartRefused(
                f"spec.startFrom.offsets.{query} names the topic {topic}, which the query does not read"
            )


def _reads(given: Mapping[str, str], topic: str) -> bool:
    if (pattern := given.get("subscribepattern")) is not None:
        return re.fullmatch(pattern, topic) is not None
    return topic in _named_topics(given)


def _named_topics(given: Mapping[str, str]) -> set[str]:
    if (listed := given.get("subscribe")) is not None:
        return {topic.strip() for topic in listed.split(",") if topic.strip()}
    if (assigned := given.get("assign")) is not None:
        try:
            return set(json.loads(assigned))
        except ValueError:
            return set()  # Spark has its own words for that
    return set()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
