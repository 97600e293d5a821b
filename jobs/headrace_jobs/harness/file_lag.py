"""Files that a query has not read yet: a listing of the source's directory, less its log in the checkpoint.

Directories of this machine are walked; all others (S3, and what else Hadoop knows) are listed by Spark's JVM.
That is done in a thread of its own: a store that does not answer must not hide the lag of other queries.
"""

from __future__ import annotations

import glob
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError

from headrace_jobs.harness.file_names import names_like
from headrace_jobs.harness.jvm_errors import innermost
from headrace_jobs.harness.offsets import LookFailed, PartitionOffsets, SourceOffsets
from headrace_jobs.harness.source_notes import NotNoted
from headrace_jobs.harness.spark_inside import private_field, source_at
from headrace_jobs.store import Store, StoreError, local_directory
from headrace_jobs.store.errors import NotFoundError

_LOG_NAME = re.compile(r"^(?P<number>\d+)(?P<compact>\.compact)?$")
# The innermost ones.
_BRACES = re.compile(r"\{(?P<choices>[^{}]*)\}")
# A store asks for money for each listing; what was listed is believed for a minute.
_REMOTE_SECONDS = 30.0
# Of a look, and of a listing, at most one part in twenty of the time.
_REST = 19.0
_FIRST_ANSWER_SECONDS = 5.0

# The files below a place, with the moment of their last change. Raises LookFailed.
ListFiles = Callable[[str], Mapping[str, float]]


@dataclass
class FileLag:
    """The file sources of one run. For one thread."""

    store: Callable[[], Store]
    directory: str
    """Of the run, in the store."""

    remote: ListFiles | None = None
    clock: Callable[[], float] = time.time
    pattern_of: Callable[[str, int], str | None] = lambda _query, _index: None
    """What the names of a query's source, by its index, have to be like."""

    _sources: dict[tuple[str, int], _Source] = field(default_factory=dict)

    def look(self, query: str, index: int, where: str, *, read_to: int | None = None) -> SourceOffsets:
        """`read_to` is the newest entry of the source's log whose batch has ended; without it all of them are
        believed to be read. Raises LookFailed.
        """
        source, pattern = self._sources.get((query, index)), self.pattern_of(query, index)
        if source is None or (source.where, source.pattern) != (where, pattern):
            log = f"{self.directory}/queries/{query}/sources/{index}"
            read = ReadFiles(self.store(), log)
            source = _Source(where, read, self._lister(where), self.clock, pattern)
            self._sources[query, index] = source
        seen = source.look(read_to, at_once=self._is_here(where))
        planned = seen.planned_beyond(read_to)
        unread = [one for one in (*seen.waiting.values(), *planned) if one is not None]
        files = PartitionOffsets(
            end=seen.taken + len(seen.waiting),
            committed=seen.taken - len(planned),
            unread_since=min(unread, default=None),
        )
        return SourceOffsets(at=seen.at, partitions={f"files/{index}": files}, divisible=True)

    def note(self, query: str, index: int, directory: str) -> dict[str, Any]:
        """For who looks at them when no driver does. Raises NotNoted."""
        try:
            pattern = self.pattern_of(query, index)
        except LookFailed as error:
            raise NotNoted(str(error)) from None
        named = {} if pattern is None else {"pattern": pattern}
        return {"kind": "files", "index": index, "directory": directory, **named}

    def _is_here(self, where: str) -> bool:
        return local_directory(where) is not None and local_directory(self.store().url) is not None

    def _lister(self, where: str) -> ListFiles:
        if local_directory(where) is not None:
            return local_files
        if self.remote is None:
            raise LookFailed("unread files can be counted in local directories only")
        return self.remote


@dataclass(frozen=True)
class _Count:
    at: float
    taken: int
    # By path, when each one was last changed.
    waiting: Mapping[str, float]
    # Of those that are taken, and were not read when they were counted: the entry of the log, and when each
    # one was last changed, where it still lies there.
    planned: Sequence[tuple[int, float | None]]

    def planned_beyond(self, read_to: int | None) -> list[float | None]:
        return [changed for entry, changed in self.planned if read_to is not None and entry > read_to]


@dataclass
class _Source:
    where: str
    read: ReadFiles
    list_files: ListFiles
    clock: Callable[[], float]
    pattern: str | None = None
    _due: float = 0.0
    _known: _Count | None = None
    _running: _InBackground | None = None

    def look(self, read_to: int | None, *, at_once: bool) -> _Count:
        """Raises LookFailed."""
        if at_once:
            return self._count(read_to)
        if self._running is None and self.clock() >= self._due:
            self._running = _InBackground(lambda: self._count(read_to))
        if self._running is not None:
            self._take(self._running)
        if self._known is None:
            raise LookFailed(f"the files in {self.where} are still being listed")
        return self._known

    def _take(self, running: _InBackground) -> None:
        try:
            counted = running.outcome(0.0 if self._known else _FIRST_ANSWER_SECONDS)
        except LookFailed:
            self._running, self._known = None, None
            raise
        if counted is not None:
            self._running, self._known = None, counted
            self._due = counted.at + max(_REMOTE_SECONDS, _REST * (self.clock() - counted.at))

    def _count(self, read_to: int | None) -> _Count:
        """First the listing, then the log: what is taken meanwhile does not wait."""
        at = self.clock()
        found = self.list_files(self.where)
        try:
            taken = self.read.paths()
        except StoreError as error:
            raise LookFailed(f"which files in {self.where} were read cannot be told: {error}") from None
        takes = names_like(self.pattern)
        waiting = {
            path: changed for path, changed in found.items() if path not in taken and takes(_name_in(path))
        }
        planned = [
            (entry, found.get(path))
            for path, entry in taken.items()
            if read_to is not None and entry > read_to
        ]
        return _Count(at, len(taken), waiting, planned)


class _InBackground:
    """One count, by a thread that holds up nobody, also not the end of the process."""

    def __init__(self, count: Callable[[], _Count]) -> None:
        self._done = threading.Event()
        self._result: _Count | Exception | None = None
        threading.Thread(target=self._work, args=(count,), name="headrace-files", daemon=True).start()

    def _work(self, count: Callable[[], _Count]) -> None:
        try:
            self._result = count()
        except Exception as error:
            self._result = error
        self._done.set()

    def outcome(self, patience_seconds: float) -> _Count | None:
        """None while it runs. Raises LookFailed."""
        if not self._done.wait(patience_seconds):
            return None
        if isinstance(self._result, LookFailed):
            raise self._result
        if isinstance(self._result, Exception):
            raise LookFailed(f"the files cannot be counted: {self._result}") from self._result
        return self._result


@dataclass
class ReadFiles:
    """The files a file source has taken, from its log: entries 0, 1, …, every tenth with all before it.

    A file is taken when its batch is planned. Which entry it is of, tells whether that batch has ended.
    """

    store: Store
    log: str
    _paths: dict[str, int] = field(default_factory=dict[str, int])
    _newest: int = -1

    def paths(self) -> Mapping[str, int]:
        """With the entry of each one. Raises StoreError."""
        entries = sorted(_log_entries(self.store.children(self.log)))
        compact = max((number for number, name in entries if name.endswith(".compact")), default=-1)
        # A compacted entry tells everything up to it, so it is only needed where we are behind it.
        start = max(self._newest + 1, compact if compact > self._newest else 0)
        for number, name in entries:
            if number >= start:
                self._paths.update(self._paths_in(name, number))
                self._newest = number
        return self._paths

    def _paths_in(self, name: str, number: int) -> Iterator[tuple[str, int]]:
        try:
            lines = self.store.get(f"{self.log}/{name}").decode().splitlines()
        except NotFoundError:  # compacted and purged since the listing; the compacted entry has it
            return
        for line in lines[1:]:  # the first line is the version
            # Files are URLs here, escaped; the places of queries and sources are Hadoop's paths: not so.
            told = json.loads(line)
            path = local_directory(told["path"])
            yield told["path"] if path is None else unquote(str(path)), told.get("batchId", number)


def local_files(where: str) -> dict[str, float]:
    directory = local_directory(where)
    assert directory is not None  # whoever asks for local files has seen that it is one
    try:
        found: dict[str, float] = {}
        for path in files_below(str(directory)):
            try:
                found[path] = os.stat(path).st_mtime  # noqa: PTH116 - hot
            except FileNotFoundError:  # moved away since the listing
                continue
    except OSError as error:
        raise LookFailed(f"the files in {directory} cannot be counted: {error.strerror}") from None
    return found


def jvm_files(jvm: Any, hadoop_conf: Callable[[], Any]) -> ListFiles:
    """By Hadoop, as Spark itself lists them: in one call, however many there are."""

    def listed(where: str) -> dict[str, float]:
        try:
            told: str = jvm.dev.headrace.SourceFiles.list(where, hadoop_conf())
        except Py4JJavaError as error:
            raise LookFailed(f"the files in {where} cannot be listed: {innermost(error)}") from None
        except Py4JError as error:
            raise LookFailed(f"the files in {where} cannot be listed: {str(error)[:300]}") from None
        lines = (line.partition("\t") for line in told.splitlines())
        return {url: int(milliseconds) / 1000 for milliseconds, _, url in lines}

    return listed


def files_below(pattern: str) -> Iterator[str]:
    """The data files a file source would see: hidden ones and those that begin with _ are not data.

    Raises OSError: a directory that is not there, or may not be read, is not an empty one.
    """
    if not glob.has_magic(pattern) and _BRACES.search(pattern) is None:
        os.stat(pattern)  # noqa: PTH116 - raises
    for one in _alternatives(pattern):
        yield from _files_below(one)


def _alternatives(pattern: str) -> Iterator[str]:
    """Hadoop's `{a,b}`, which Python does not know."""
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    for choice in braces["choices"].split(","):
        yield from _alternatives(pattern[: braces.start()] + choice + pattern[braces.end() :])


def _files_below(pattern: str) -> Iterator[str]:
    for root in glob.glob(pattern) if glob.has_magic(pattern) else [pattern]:  # noqa: PTH207
        if Path(root).is_file():
            if _is_data(Path(root).name):
                yield root
            continue
        for directory, inner, names in os.walk(root, onerror=_unless_gone):
            inner[:] = [name for name in inner if _is_data(name)]
            yield from (os.path.join(directory, name) for name in names if _is_data(name))  # noqa: PTH118 - hot


def _unless_gone(error: OSError) -> None:
    """One that was removed while others were walked has no files."""
    if not isinstance(error, FileNotFoundError):
        raise error


def jvm_patterns(find_query: Callable[[str], Any]) -> Callable[[str, int], str | None]:
    """The `pathGlobFilter` of the file sources of queries in the JVM. Raises LookFailed."""

    def pattern_of(query: str, index: int) -> str | None:
        try:
            source = source_at(find_query(query).streamingQuery(), index)
            options = private_field(source, "sourceOptions").optionMapWithoutPath()
            # Spark keeps the names of options in small letters.
            found = options.get("pathglobfilter")
            return str(found.get()) if found.isDefined() else None
        except Py4JError as error:
            raise LookFailed(f"Spark does not tell which files it takes: {str(error)[:300]}") from None

    return pattern_of


def _name_in(path: str) -> str:
    """Of a path of this machine, or of a URL, which is escaped."""
    name = path.rpartition("/")[2]
    return unquote(name) if "://" in path else name


def _is_data(name: str) -> bool:
    return not name.startswith((".", "_")) and not name.endswith("._COPYING_")


def _log_entries(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    for name in names:
        match = _LOG_NAME.match(name)
        if match:
            yield int(match["number"]), name
