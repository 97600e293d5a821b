"""One look at all sources of a run: what they hold beyond what its checkpoint has read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headrace_jobs.harness.file_lag import ReadFiles, files_below
from headrace_jobs.harness.file_names import names_like
from headrace_jobs.harness.offsets import LookFailed, PartitionOffsets, numbers_in
from headrace_jobs.harness.source_notes import Note, read_notes
from headrace_jobs.lookout.watch import Seen
from headrace_jobs.store import Store
from headrace_jobs.store.logs import read_offsets
from headrace_jobs.store.runs import checkpoint_batches, run_directory


class Topics(Protocol):
    """The topics of one source: ends and first offsets by partition, as they are now. Raises LookFailed."""

    def look(self) -> tuple[Mapping[str, tuple[int, int]], float | None]: ...


@dataclass
class Sources:
    """Of a run whose driver has ended: how far it has read does not change any more."""

    store: Store
    run: int
    open_topics: Callable[[Note], Topics]
    _committed: dict[str, dict[str, int]] = field(default_factory=dict)
    _notes: dict[str, list[Note]] | None = None
    _topics: dict[tuple[str, int], Topics] = field(default_factory=dict)

    def look(self) -> Seen:
        """Raises LookFailed, NotNoted, StoreError."""
        if self._notes is None:
            self._notes = read_notes(self.store, self.run)
        retention: list[float] = []
        for query, notes in self._notes.items():
            checkpoint = f"{run_directory(self.run)}/queries/{query}"
            batches = checkpoint_batches(self.store, checkpoint)
            if batches.pending:
                return Seen(work=f"a batch of {query} was begun and has not ended")
            for index, note in enumerate(notes):
                waiting, keeps = self._waiting(query, index, note, checkpoint, batches.commits)
                if waiting is not None:
                    return Seen(work=f"{waiting} in the sources of {query}")
                retention += [keeps] if keeps is not None else []
        return Seen(retention_seconds=min(retention, default=None))

    def _waiting(
        self, query: str, index: int, note: Note, checkpoint: str, batch: int | None
    ) -> tuple[str | None, float | None]:
        if note["kind"] == "files":
            return self._waiting_files(checkpoint, note), None
        if (query, index) not in self._topics:
            self._topics[query, index] = self.open_topics(note)
        ends, retention = self._topics[query, index].look()
        return _in_words(ends, self._read(query, checkpoint, batch)), retention

    def _read(self, query: str, checkpoint: str, batch: int | None) -> Mapping[str, int]:
        if batch is None:
            raise LookFailed(f"{query} has committed nothing yet, so nobody knows where it begins")
        if query not in self._committed:
            key = f"{checkpoint}/offsets/{batch}"
            self._committed[query] = committed_in(read_offsets(key, self.store.get(key)).sources)
        return self._committed[query]

    def _waiting_files(self, checkpoint: str, note: Note) -> str | None:
        taken = ReadFiles(self.store, f"{checkpoint}/sources/{note['index']}").paths()
        takes = names_like(note.get("pattern"))
        try:
            found = list(files_below(note["directory"]))
        except OSError as error:
            why = f"the files in {note['directory']} cannot be counted: {error.strerror}"
            raise LookFailed(why) from None
        waiting = sum(1 for file in found if file not in taken and takes(Path(file).name))
        if not waiting:
            return None
        return f"{waiting} files wait" if waiting > 1 else "1 file waits"


def committed_in(sources: Mapping[str, Any]) -> dict[str, int]:
    """By topic and partition. Where two sources read the same one, what both have read."""
    read: dict[str, int] = {}
    for offset in sources.values():
        for path, number in numbers_in(offset):
            if len(path) == 2:
                name = "/".join(path)
                read[name] = min(number, read.get(name, number))
    return read


def _in_words(ends: Mapping[str, tuple[int, int]], read: Mapping[str, int]) -> str | None:
    behind = {
        name: PartitionOffsets(end, read.get(name), first).behind or 0 for name, (end, first) in ends.items()
    }
    anew = [name for name, (end, _) in ends.items() if name in read and end < read[name]]
    if anew:
        return f"a topic that was made anew ({anew[0]} ends before what was read)"
    rows = sum(behind.values())
    if not rows:
        return None
    most = max(behind, key=lambda name: behind[name])
    return f"{rows} rows wait ({most} has {behind[most]})"
