"""Takes over `spark.streams`, so that it knows queries as the user does: drained ones simply ended."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQueryManager

from headrace_jobs.harness.managed import ManagedQuery, QueryRegistry
from headrace_jobs.harness.patches import Patches


def take_over_manager(patches: Patches, registry: QueryRegistry) -> None:
    def active(_self: Any) -> list[ManagedQuery]:
        return registry.active()

    def get(_self: Any, id: str) -> ManagedQuery | None:
        return next((query for query in registry.active() if query.lineage == id), None)

    def await_any_termination(_self: Any, timeout: int | None = None) -> bool | None:
        ended = registry.wait_for_any_end(timeout)
        return ended if timeout is not None else None

    def reset_terminated(_self: Any) -> None:
        registry.reset_ends()

    patches.replace(StreamingQueryManager, "active", lambda _original: property(active))
    patches.replace(StreamingQueryManager, "get", lambda _original: get)
    patches.replace(StreamingQueryManager, "awaitAnyTermination", lambda _original: await_any_termination)
    patches.replace(StreamingQueryManager, "resetTerminated", lambda _original: reset_terminated)
