"""Another minor version of Spark: what a rehearsal can say about the way back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace_jobs.store.formats import Formats, newer


def way_back(before: Iterable[str], now: str, formats: Mapping[str, tuple[Formats, Formats]]) -> str | None:
    """A sentence, where the version that runs has another Spark; None where it has the same.

    `before` and `now` are minor versions; `formats` are those of each query, before the rehearsal and after.
    """
    others = sorted(set(before) - {now})
    if not others:
        return None
    old = " and ".join(others)
    found = {query: newer(*pair) for query, pair in formats.items()}
    one_way = [f"query {query}: {', '.join(logs)}" for query, logs in sorted(found.items()) if logs]
    if one_way:
        return (
            f"Spark {old} → {now}, ONE WAY: it writes what {old} cannot read ({'; '.join(one_way)}). Once it "
            "has committed a batch, a rollback goes back to the handover point under a new lineage"
        )
    return f"Spark {old} → {now}: its logs have the formats that {old} wrote, so a rollback goes on from them"
