"""What the state of each query means: noted beside the checkpoint (`_plans/`), compared in a rehearsal."""

from __future__ import annotations

import json
import logging
import platform
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql.udf import UserDefinedFunction

from headrace_jobs.harness.code_digest import code_digest
from headrace_jobs.harness.failure import UserCode
from headrace_jobs.harness.managed import ManagedQuery
from headrace_jobs.harness.meaning import (
    Meaning,
    differences,
    meaning_from_json,
    meaning_of,
    other_sources,
)
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.source_identity import sources_of
from headrace_jobs.harness.writer import Start
from headrace_jobs.store import Store, StoreError, query_names, read_seed, run_directory
from headrace_jobs.store.errors import NotFoundError
from headrace_jobs.store.runs import last_batches_of

log = logging.getLogger("headrace")

_LOOK_SECONDS = 0.5


class Functions:
    """Digests of the user's own functions, by the name that plans know them by."""

    def __init__(self, own: UserCode) -> None:
        self._own = own
        self._functions: dict[str, list[Any]] = defaultdict(list)

    def take_over(self, patches: Patches) -> None:
        def remembering(original: Any) -> Any:
            def __init__(udf: Any, func: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes one
                original(udf, func, *args, **kwargs)
                self._functions[udf._name].append(func)

            return __init__

        patches.replace(UserDefinedFunction, "__init__", remembering)

    def digests(self) -> dict[str, str]:
        return {
            name: "+".join(sorted({code_digest(function, self._own.owns) for function in functions}))
            for name, functions in list(self._functions.items())
        }


@dataclass
class Comparison:
    """`complete`: every query that both versions have was compared."""

    complete: bool
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # The minor versions of Spark that the compared queries ran on before.
    spark_before: set[str] = field(default_factory=set)


class Meanings:
    """Of the queries that this driver has started."""

    def __init__(self, session: Any, functions: Functions) -> None:
        self._session, self._functions = session, functions
        self._meanings: dict[str, Meaning | None] = {}

    def note(self, start: Start) -> Meaning | None:
        """None where the plan cannot be read: no reason to stop anybody, only nothing to compare."""
        try:
            self._meanings[start.name] = self._read(start)
        except Exception as error:
            log.warning("what the state of query %s means could not be noted: %r", start.name, error)
            self._meanings[start.name] = None
        return self._meanings[start.name]

    def of(self, query: str) -> Meaning | None:
        return self._meanings.get(query)

    def _read(self, start: Start) -> Meaning:
        plan = start.frame._jdf.queryExecution().analyzed()
        return meaning_of(
            json.loads(plan.toJSON()),
            plan.toString(),
            output_mode=start.state.output_mode,
            digests=self._functions.digests(),
            spark_version=minor(self._session.version),
            python_version=minor(platform.python_version()),
            sources=_sources(plan, start.name),
        )

    def other_sources(self, store: Store, from_run: int, query: str) -> list[str]:
        """Of a query that is about to be forked: recorded batches are of the old ones. Raises StoreError."""
        before, after = read_meaning(store, from_run, query), self._meanings.get(query)
        return other_sources(query, before, after) if before is not None and after is not None else []

    def compare(self, store: Store, from_run: int, known: list[str]) -> Comparison:
        """With what run `from_run` noted; `known` are its queries. Raises StoreError."""
        result = Comparison(complete=True)
        for name in known:
            before = read_meaning(store, from_run, name)
            if name not in self._meanings:
                result.differences.append(
                    f"query {name} is not started any more, or under another name: its state stays behind"
                )
                continue
            after = self._meanings[name]
            if before is None or after is None:
                result.complete = False
                result.notes.append(f"query {name}: run {from_run} did not note what its state means")
                continue
            result.spark_before.add(before.spark_version)
            result.differences += differences(name, before, after)
            if before.sources is None or after.sources is None:
                result.notes.append(
                    f"query {name}: its sources were not compared, one version did not note them"
                )
            if before.output_mode != after.output_mode:
                result.notes.append(
                    f"query {name}: output mode {before.output_mode} became {after.output_mode}"
                )
        return result


def _sources(plan: Any, query: str) -> tuple[str, ...] | None:
    """None of a Spark that is made otherwise inside: the state is compared all the same."""
    try:
        return sources_of(plan)
    except Py4JError as error:
        log.warning("what the sources of query %s are could not be noted: %r", query, error)
        return None


def write_meaning(store: Store, run: int, query: str, meaning: Meaning) -> None:
    store.put(_key(run, query), json.dumps(meaning.to_json()).encode())


def read_meaning(store: Store, run: int, query: str) -> Meaning | None:
    try:
        return meaning_from_json(json.loads(store.get(_key(run, query))))
    except (NotFoundError, ValueError, KeyError, TypeError):
        return None


def minor(version: str) -> str:
    """Within a minor version plans are written, and Python compiled, the same way."""
    return ".".join(version.split(".")[:2])


def queries_at_work(store: Store, run: int) -> list[str]:
    """Those that the run works on. What was given up lies there as well: it came with the state of the run
    before, so that a rollback finds it, and nobody has started it since. Raises StoreError."""
    known, seed = query_names(store, run), read_seed(store, run)
    noted = set(store.children(f"{run_directory(run)}/_plans"))
    if seed is None or not noted:
        return known  # as long as nobody has shown itself, nobody was given up
    return [
        name
        for name in known
        if f"{name}.json" in noted or last_batches_of(store, run, name) != seed.batches.get(name)
    ]


def _key(run: int, query: str) -> str:
    return f"{run_directory(run)}/_plans/{query}.json"


def note_when_proven(store: Callable[[], Store], run: int, query: ManagedQuery, meaning: Meaning) -> None:
    """In the background, when the query has run its first batch: then the state is of this meaning.

    The store is opened as late: its client takes a while to load, and the first batch need not wait for it.
    """

    def wait_and_write() -> None:
        pause = threading.Event()
        try:
            while query.isActive and query.java.lastProgress() is None:
                pause.wait(_LOOK_SECONDS)
            if query.java.lastProgress() is not None:
                write_meaning(store(), run, query.query_name, meaning)
        except (StoreError, Py4JError) as error:
            log.warning("what the state of query %s means could not be kept: %s", query.query_name, error)

    name = f"headrace-meaning-{query.query_name}"
    threading.Thread(target=wait_and_write, name=name, daemon=True).start()
