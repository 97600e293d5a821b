"""The layout of a run in the store, and what its logs say.

run-<n>/_attempts/<k>          who may write: the claim of attempt k
run-<n>/_seed.json             written last when the run was seeded from another one
run-<n>/_code/pinned.json      written last when the application was copied from elsewhere: what is what
run-<n>/_code/<sha256>/<file>  the files themselves
run-<n>/_plans/<query>.json    what the query's state means, as its driver noted at the first batch
run-<n>/_sinks/<query>         what the query writes to, as Spark describes it
run-<n>/_sources/<query>.json  where the query reads, for who looks for work while the job sleeps
run-<n>/queries/<name>/        Spark's checkpoint of one query
run-<n>/_logs/attempt-<k>.log  the end of the log of an attempt that failed
run-<n>/_events/               Spark's event logs, where the job asks for them
rehearsal-<n>/                 the fork on which the candidate for run n is tried: store/rehearsals.py

Beside the runs lies _scaling/ring.json: what the autoscaler has decided and remembers. Beside the lineages of
a job lies _lineages/: how far those have gone whose runs are removed (store/lineages.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headrace_jobs.store.errors import NotFoundError
from headrace_jobs.store.interface import Store

Run = int | str
"""A run by its number, or any directory of the store's root by its name (`rehearsal-4`)."""


_RUN = re.compile(r"^run-(\d+)/?$")
# Below `queries/`: both logs of the query, and those of its sources; `19.compact` stands for many entries.
_LOG = re.compile(r"^[^/]+/(?:offsets|commits|sources/\d+)/\d+(?:\.compact)?$")


class LastBatches(NamedTuple):
    """The newest entries of a query's two logs; None where the log is empty."""

    offsets: int | None
    commits: int | None

    @property
    def pending(self) -> bool:
        """A batch has begun and not been committed: its rows may or may not be in the sink."""
        return self.offsets != self.commits


def run_directory(run: Run) -> str:
    return run if isinstance(run, str) else f"run-{run}"


def run_number(name: str) -> int | None:
    """Of a directory beside the runs; None where it is none."""
    match = _RUN.match(name)
    return int(match[1]) if match else None


def is_log(key: str) -> bool:
    """Below `queries/`: an entry of a log, which is written once."""
    return _LOG.match(key) is not None


def query_names(store: Store, run: Run) -> list[str]:
    found = store.children(f"{run_directory(run)}/queries")
    return [name.rstrip("/") for name in found if name.endswith("/")]


def last_batches(store: Store, run: Run) -> dict[str, LastBatches]:
    """Per query the newest batch that has begun and the newest that was committed."""
    return {name: last_batches_of(store, run, name) for name in query_names(store, run)}


def batches_in(keys: Iterable[str]) -> dict[str, LastBatches]:
    """The same, of a run whose keys below `queries/` are known."""
    newest: dict[str, dict[str, int]] = {}
    for key in keys:
        query, slash, rest = key.partition("/")
        if slash:
            logs = newest.setdefault(query, {})
            log, _, name = rest.partition("/")
            number = _number(name)
            if log in LastBatches._fields and number is not None:
                logs[log] = max(number, logs.get(log, number))
    return {query: LastBatches(logs.get("offsets"), logs.get("commits")) for query, logs in newest.items()}


def last_batches_of(store: Store, run: Run, query: str) -> LastBatches:
    """Of one query; of one that is not there, none."""
    return checkpoint_batches(store, f"{run_directory(run)}/queries/{query}")


def checkpoint_batches(store: Store, checkpoint: str) -> LastBatches:
    """The same for the checkpoint of one query, wherever it lies."""
    # Commits first: while the query goes on, its offsets are never behind them.
    commits = _newest(store, f"{checkpoint}/commits")
    return LastBatches(offsets=_newest(store, f"{checkpoint}/offsets"), commits=commits)


def newest_claim(store: Store, run: Run) -> int | None:
    """The newest attempt that has claimed the run, or None before the first."""
    return _newest(store, f"{run_directory(run)}/_attempts")


def claim_attempt(store: Store, run: Run, attempt: int, body: dict[str, Any]) -> bool:
    """Takes the run for one attempt; False when this attempt or a newer one has it."""
    newest = newest_claim(store, run)
    if newest is not None and newest >= attempt:
        return False
    return store.put_if_absent(f"{run_directory(run)}/_attempts/{attempt}", json.dumps(body).encode())


def read_claim(store: Store, run: Run, attempt: int) -> dict[str, Any] | None:
    try:
        return json.loads(store.get(f"{run_directory(run)}/_attempts/{attempt}"))
    except NotFoundError:
        return None


def spark_version_of(store: Store, run: Run) -> str | None:
    """The version of Spark that writes the run, or wrote it last; None where no attempt has told."""
    newest = newest_claim(store, run)
    claim = read_claim(store, run, newest) if newest is not None else None
    return (claim or {}).get("sparkVersion")


def tell_sink(store: Store, run: Run, query: str, description: str) -> None:
    """Kept beside the checkpoint, which does not know it: some sinks cannot follow a fork."""
    store.put(f"{run_directory(run)}/_sinks/{query}", description.encode())


def tell_sinks(store: Store, run: Run, sinks: Mapping[str, str]) -> None:
    """What is known of a run's sinks goes with its state: it may be copied again before a query starts."""
    for query, description in sinks.items():
        tell_sink(store, run, query, description)


def told_sinks(store: Store, run: Run) -> dict[str, str]:
    sinks = f"{run_directory(run)}/_sinks"
    return {query: store.get(f"{sinks}/{query}").decode() for query in store.children(sinks)}


def _newest(store: Store, directory: str) -> int | None:
    numbers = (_number(name) for name in store.children(directory))
    return max((number for number in numbers if number is not None), default=None)


def _number(name: str) -> int | None:
    """Of an entry of a log; `19.compact` stands for entry 19 and all before it."""
    number = name.removesuffix(".compact")
    return int(number) if number.isdecimal() else None
