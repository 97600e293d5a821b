"""What a lookout must know to look for work in the driver's place: `_sources/<query>.json`, beside the run.

A checkpoint tells how far a query has read, but not where: the options of its sources are in the user's code.
So the driver notes them when it has measured a lag. Never a secret: one that `spec.kafka` gives is a file by
its name, and one that the code sets itself keeps the job awake, with the reason.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from headrace_jobs.store import Store, StoreError, run_directory
from headrace_jobs.store.errors import NotFoundError

log = logging.getLogger("headrace")

_VERSION = 1
_RETRY_SECONDS = 60.0
_SENSITIVE = re.compile(r"(?i)password|secret|token|jaas|credential|keystore\.key$")
# Put in by Kafka's own providers, where it connects.
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")

Note = dict[str, Any]


class NotNoted(Exception):
    """Nobody but the driver can look at this source; the message says why."""


class SourceNotes:
    """The notes of one run. For one thread."""

    def __init__(self, open_store: Callable[[], Store], run: int) -> None:
        self._open_store = open_store
        self._run = run
        self._kept: dict[str, str] = {}
        self._failed: dict[str, tuple[float, str]] = {}

    def keep(self, query: str, sources: list[Note]) -> str | None:
        """Why the notes are not there; None if they are."""
        content = json.dumps({"version": _VERSION, "sources": sources}, sort_keys=True)
        if self._kept.get(query) == content:
            return None
        before = self._failed.get(query)
        if before is not None and time.monotonic() - before[0] < _RETRY_SECONDS:
            return before[1]
        try:
            self._open_store().put(place_of(self._run, query), content.encode())
        except StoreError as error:
            why = f"what its sources are cannot be noted: {error}"
            self._failed[query] = (time.monotonic(), why)
            log.warning("%s: %s", query, why)
            return why
        self._kept[query] = content
        self._failed.pop(query, None)
        return None


def place_of(run: int, query: str) -> str:
    return f"{run_directory(run)}/_sources/{query}.json"


def read_notes(store: Store, run: int) -> dict[str, list[Note]]:
    """By query. Raises NotNoted, StoreError."""
    names = [name for name in store.children(f"{run_directory(run)}/_sources") if name.endswith(".json")]
    queries = [name.removesuffix(".json") for name in names]
    if not queries:
        raise NotNoted("the driver has left no note of its sources")
    return {query: _read(store, run, query) for query in queries}


def _read(store: Store, run: int, query: str) -> list[Note]:
    try:
        found = json.loads(store.get(place_of(run, query)))
        if found["version"] == _VERSION:
            return found["sources"]
    except (ValueError, KeyError, TypeError, NotFoundError) as error:
        raise NotNoted(f"the note of the sources of {query} cannot be read: {error}") from None
    raise NotNoted(f"the note of the sources of {query} is of another version")


def kafka_note(
    params: Mapping[str, str], options: Mapping[str, str | None], *, references: Collection[str]
) -> Note:
    """`references` are values that speak of secrets and are none. Raises NotNoted."""
    for key, value in sorted(params.items()):
        harmless = value in references or _PLACEHOLDER.fullmatch(value) is not None
        if _SENSITIVE.search(key) and not harmless:
            raise NotNoted(
                f"the code sets kafka.{key} itself, and a secret is not noted. Put it into spec.kafka"
            )
    chosen = {key: value for key, value in options.items() if value is not None}
    if len(chosen) != 1:
        raise NotNoted("which topics it reads is not known")
    return {"kind": "kafka", "params": dict(params), "topics": chosen}
