"""What a run begins with that follows a candidate on trial: decided query by query, from the logs.

N is the last batch that the incumbent committed: the handover point. The candidate began with a copy of it.

    the candidate wrote no offsets/N+1             Handover   the incumbent's path
    it wrote offsets/N+1, and committed nothing    Carried    the incumbent's path, with that entry: its rows
                                                              may be in a sink, and only the same bounds make
                                                              the replay recognisable
    it committed batches up to M                   Forward    its own path, at M. Back to N, a sink that knows
                                                              (lineage, batch) would drop other rows under the
                                                              same numbers
    Forward, but the old version cannot read it    Rewound    the incumbent's path, under a new lineage
    its offsets/N+1 is of other sources or topics  Rewound    nobody but the candidate could go on from it

Where the state of the candidate was split into another number of partitions, that is its batch N+1, of which
no sink knows: with nothing after it, Handover. With anything after it, Forward, also where that is not
committed: it is replayed under the number that it has. Half of a repartition is undone first.

What the candidate left uncommitted beside the entry (state, schemas) stays behind in every case but Forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headrace_jobs.store.errors import LineageError, NotFoundError, SeedError
from headrace_jobs.store.interface import Entry, Store
from headrace_jobs.store.logs import OffsetsEntry, read_lineage, read_offsets
from headrace_jobs.store.mirror import Wanted, mirror
from headrace_jobs.store.partitions import is_later, repartitions_at, undo_unfinished
from headrace_jobs.store.runs import LastBatches, Run, last_batches, newest_claim, run_directory, told_sinks
from headrace_jobs.store.savepoints.lineage import FILE_SINK
from headrace_jobs.store.savepoints.restore import forked
from headrace_jobs.store.seed import Seed, copy_code, earlier_seed, is_seeded, write_marker
from headrace_jobs.store.statepaths import names_paths, with_paths_moved

Way = Literal["Handover", "Carried", "Forward", "Rewound"]
_NOTHING = LastBatches(None, None)


@dataclass(frozen=True)
class _Trial:
    """Two runs of one job, and what became of each query."""

    store: Store
    incumbent: str
    candidate: str
    before: dict[str, LastBatches]
    after: dict[str, LastBatches]

    def ways(self, *, rewind: bool) -> dict[str, Way]:
        return {
            query: self._way(query, rewind=rewind) for query in sorted(self.before.keys() | self.after.keys())
        }

    def _way(self, query: str, *, rewind: bool) -> Way:
        if query not in self.after:
            return "Handover"
        if query not in self.before or not self._same_lineage(query):
            return "Forward"
        before, after = self.before[query], self.after[query]
        if after == before:
            return "Handover"
        if _number(after.commits) < _number(before.commits):
            raise SeedError(
                f"query {query} is at batch {after.commits} in {self.candidate} and was at {before.commits} "
                f"in {self.incumbent}, which it came from: one of them was changed by hand"
            )
        split = self._split_at(query)
        if split is not None and after == LastBatches(split, split):
            return "Handover"
        if rewind:
            return "Rewound"
        if after.commits not in (before.commits, split):
            return "Forward"
        if not self._goes_on(query):
            return "Rewound"
        return "Carried" if split is None else "Forward"

    def _split_at(self, query: str) -> int | None:
        """The batch that only split the candidate's state anew, before its queries began; None: none did."""
        before, after = self.before[query], self.after[query]
        if before.pending or before.commits is None or _number(after.commits) <= before.commits:
            return None
        batch, checkpoint = before.commits + 1, f"{self.candidate}/queries/{query}"
        try:
            return batch if repartitions_at(self.store, checkpoint, batch) else None
        except NotFoundError:
            return None  # purged long since: it has gone on far beyond

    def _split_alone(self, query: str) -> int | None:
        """The same, where the candidate has committed nothing else."""
        split = self._split_at(query) if query in self.before else None
        return split if split == self.after[query].commits else None

    def _same_lineage(self, query: str) -> bool:
        return self._lineage(self.incumbent, query) == self._lineage(self.candidate, query)

    def _lineage(self, run: str, query: str) -> str | None:
        key = f"{run}/queries/{query}/metadata"
        try:
            return read_lineage(key, self.store.get(key))
        except NotFoundError:
            return None

    def _goes_on(self, query: str) -> bool:
        """Whether the pending entry is of what the incumbent reads. Without a batch of its own the incumbent
        has nothing to compare with, and no state to lose."""
        last = self.before[query].offsets
        if last is None:
            return True
        pending = self._offsets(self.candidate, query, _number(self.after[query].offsets))
        return pending.goes_on_from(self._offsets(self.incumbent, query, last))

    def _offsets(self, run: str, query: str, batch: int) -> OffsetsEntry:
        key = f"{run}/queries/{query}/offsets/{batch}"
        return read_offsets(key, self.store.get(key))

    def batches(self, query: str, way: Way) -> LastBatches:
        """What the two logs of the new run end with."""
        before, after = self.before.get(query, _NOTHING), self.after.get(query, _NOTHING)
        match way:
            case "Forward":
                return after
            case "Carried":
                return LastBatches(offsets=after.offsets, commits=before.commits)
            case _:
                return before

    def entries(self, query: str, way: Way) -> Iterator[tuple[Entry, str]]:
        """The objects, each with the run that it lies in."""
        origin = self.candidate if way == "Forward" else self.incumbent
        split = self._split_alone(query) if way == "Forward" else None
        for entry in self._list(origin, query):
            below = _below(entry.key, origin, query)
            if split is not None and is_later(below, split):
                continue  # left beside the entry of its first batch
            if not (way == "Carried" and below.startswith("sources/")):
                yield entry, origin
        if way == "Carried":
            pending = f"offsets/{self.after[query].offsets}"
            for entry in self._list(self.candidate, query):
                below = _below(entry.key, self.candidate, query)
                if below == pending or below.startswith("sources/"):
                    yield entry, self.candidate

    def _list(self, run: str, query: str) -> Iterator[Entry]:
        return self.store.list(f"{run}/queries/{query}/")


def seed_after_trial(
    store: Store,
    *,
    incumbent: Run,
    candidate: Run,
    to_run: Run,
    rewind: bool = False,
    code_of: Run | None = None,
) -> Seed:
    """Seeds the run, which must not have begun. May be called again at any time: it goes on where it was.

    `rewind`: the old version cannot read what the candidate left. Raises LineageError where that cannot be.
    """
    done = earlier_seed(store, to_run, source=run_directory(candidate))
    if done is not None:
        return done
    undo_unfinished(store, candidate)
    trial = _look(store, run_directory(incumbent), run_directory(candidate))
    ways = trial.ways(rewind=rewind)
    _check_sinks(trial, ways)
    target = f"{run_directory(to_run)}/queries/"
    wanted = [
        _wanted(store, entry, origin, target, way)
        for query, way in ways.items()
        for entry, origin in trial.entries(query, way)
    ]
    mirror(store, wanted, target)
    copy_code(store, code_of, to_run)
    seed = Seed(
        from_run=run_directory(candidate),
        batches=_verified(store, to_run, {query: trial.batches(query, way) for query, way in ways.items()}),
        objects=len(wanted),
        size_bytes=sum(one.source.size for one in wanted),
        rewritten=sum(one.content is not None for one in wanted),
        ways=dict(ways),
    )
    write_marker(store, to_run, seed)
    return seed


def _look(store: Store, incumbent: str, candidate: str) -> _Trial:
    if not is_seeded(store, candidate) and newest_claim(store, candidate) is None:
        raise SeedError(f"there is no {store.url}/{candidate}: was it removed, or moved?")
    return _Trial(store, incumbent, candidate, last_batches(store, incumbent), last_batches(store, candidate))


def _check_sinks(trial: _Trial, ways: dict[str, Way]) -> None:
    sinks = {**told_sinks(trial.store, trial.incumbent), **told_sinks(trial.store, trial.candidate)}
    for query, way in ways.items():
        if way == "Rewound" and sinks.get(query, "").startswith(FILE_SINK):
            raise LineageError(
                f"query {query} writes files with Spark's file sink ({sinks[query]}), whose log is bound to "
                f"the query's batch numbers: it cannot go back to batch {trial.before[query].commits}, which "
                f"{trial.candidate} has left behind. Edit the job so that it can read the newer state"
            )


def _wanted(store: Store, entry: Entry, origin: str, target: str, way: Way) -> Wanted:
    source = f"{origin}/queries/"
    key = entry.key.removeprefix(source)
    if names_paths(key):
        urls = (f"{store.url}/{place}".rstrip("/") for place in (source, target))
        return Wanted(entry, target + key, content=with_paths_moved(store.get(entry.key), *urls))
    if way == "Rewound" and key.endswith("/metadata") and key.count("/") == 1:
        return Wanted(entry, target + key, content=forked(f"{store.url}/{target}{key}"))
    return Wanted(entry, target + key)


def _verified(store: Store, to_run: Run, wanted: dict[str, LastBatches]) -> dict[str, LastBatches]:
    found = last_batches(store, to_run)
    if found != wanted:
        raise SeedError(
            f"{run_directory(to_run)} came out as {found}, not as {wanted}: the runs it is made from changed "
            "meanwhile, their drivers must be stopped first"
        )
    return found


def _below(key: str, run: str, query: str) -> str:
    return key.removeprefix(f"{run}/queries/{query}/")


def _number(batch: int | None) -> int:
    return -1 if batch is None else batch
