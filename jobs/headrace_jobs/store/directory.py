"""A store in a directory: for `headrace dev`, tests, and shared file systems."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace_jobs.store.errors import (
    BadLocationError,
    NoRightsError,
    NoSpaceError,
    NotFoundError,
    SourceChangedError,
    StoreError,
    UnavailableError,
)
from headrace_jobs.store.interface import PIECE_BYTES, Copy, Entry, OpenUpload
from headrace_jobs.store.probe import probe_conditional_put

_COPY_THREADS = 8
_REMOVAL_TRIES = 10
_LOCKING = threading.Lock()
# What file systems without hard links say, some of those in user space that they know no such call.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


class DirectoryStore:
    def __init__(self, root: Path) -> None:
        if not root.is_absolute():
            raise BadLocationError(str(root), "the path is not absolute")
        self._root = root

    @property
    def url(self) -> str:
        return f"file://{self._root}"

    def list(self, prefix: str = "") -> Iterator[Entry]:
        # A prefix may end inside a name; the walk starts at the last whole directory.
        start = self._root / prefix.rpartition("/")[0]
        found = (entry for entry in self._walk(start) if entry.key.startswith(prefix))
        yield from sorted(found, key=lambda entry: entry.key)

    def children(self, prefix: str) -> Sequence[str]:
        directory = self._root / prefix
        with _translated("list", directory):
            try:
                found = [*os.scandir(directory)]
            except (FileNotFoundError, NotADirectoryError):
                return []
            return sorted(
                item.name + ("/" if item.is_dir() else "") for item in found if not _is_artefact(item.name)
            )

    def get(self, key: str) -> bytes:
        path = self._path(key)
        with _translated("read", path):
            return path.read_bytes()

    def put(self, key: str, content: bytes) -> None:
        self.put_pieces(key, [content])

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        path = self._path(entry.key)
        with _translated("read", path):
            try:
                with path.open("rb") as file:
                    while piece := file.read(PIECE_BYTES):
                        yield piece
                    unchanged = _entry(entry.key, os.fstat(file.fileno())).etag == entry.etag
            except FileNotFoundError:
                unchanged = False
        if not unchanged:
            raise SourceChangedError(str(path))

    def put_pieces(self, key: str, pieces: Iterable[bytes]) -> None:
        path = self._path(key)
        with _translated("write", path), self._temporary(path) as temporary:
            _write_durably(temporary, pieces)
            temporary.replace(path)
            _sync_directory(path.parent)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self._create(key, lambda temporary: _write_durably(temporary, [content]))

    def download(self, key: str, path: Path) -> None:
        source = self._path(key)
        with _translated("read", source):
            shutil.copyfile(source, path)

    def upload_if_absent(self, key: str, path: Path) -> bool:
        return self._create(key, lambda temporary: _copy_durably(path, temporary))

    def _create(self, key: str, write: Callable[[Path], None]) -> bool:
        path = self._path(key)
        with _translated("write", path), self._temporary(path) as temporary:
            write(temporary)
            created = _named_once(temporary, path)
            if created:
                _sync_directory(path.parent)
            return created

    def copy(self, copy: Copy) -> None:
        source, target = self._path(copy.source.key), self._path(copy.target)
        with _translated("copy", source), self._temporary(target) as temporary:
            try:
                if not (copy.immutable and _linked(source, temporary)):
                    shutil.copy2(source, temporary)
                    _sync_file(temporary)
                unchanged = _entry(copy.source.key, source.stat()).etag == copy.source.etag
            except FileNotFoundError:
                unchanged = False
            if not unchanged:
                raise SourceChangedError(str(source))
            temporary.replace(target)
            # What is written last, to vouch for all copies, must not outlast one of them when the power goes.
            with contextlib.suppress(FileNotFoundError):  # removed since, which is for the caller to find out
                _sync_directory(target.parent)

    def copy_many(self, copies: Iterable[Copy]) -> None:
        with ThreadPoolExecutor(_COPY_THREADS) as pool:
            for _ in pool.map(self.copy, copies):
                pass

    def delete_many(self, keys: Iterable[str]) -> None:
        for key in keys:
            path = self._path(key)
            with _translated("delete", path):
                path.unlink(missing_ok=True)
                # Hadoop's local file system may have left its checksum beside the file.
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
                self._prune_empty(path.parent)

    def delete_tree(self, prefix: str) -> None:
        path = self._path(prefix)
        with _translated("delete", path):
            _remove_tree(path)
            self._prune_empty(path.parent)

    def open_uploads(self) -> Sequence[OpenUpload]:
        return []

    def abort_upload(self, upload: OpenUpload) -> None:
        """There is none: what a killed writer left is a temporary file."""

    def probe(self) -> None:
        probe_conditional_put(self)

    def _path(self, key: str) -> Path:
        path = self._root / key
        if not key or ".." in path.parts or key.startswith("/"):
            raise BadLocationError(f"{self.url}/{key}", "a key is a relative path without '..'")
        return path

    def _walk(self, directory: Path) -> Iterator[Entry]:
        with _translated("list", directory):
            try:
                items = [*os.scandir(directory)]
            except (FileNotFoundError, NotADirectoryError):
                return
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    yield from self._walk(Path(item.path))
                elif not _is_artefact(item.name):
                    # Spark's retention deletes under us: what is gone was not to be listed.
                    with contextlib.suppress(FileNotFoundError):
                        yield _entry(Path(item.path).relative_to(self._root).as_posix(), item.stat())

    def _prune_empty(self, directory: Path) -> None:
        """Directories are no objects: they end with their last file, as on S3."""
        with contextlib.suppress(OSError):
            while directory != self._root:
                directory.rmdir()
                directory = directory.parent

    @contextlib.contextmanager
    def _temporary(self, target: Path) -> Iterator[Path]:
        _make_durably(target.parent)
        # The same pattern as the JVM's file manager: whoever lists a checkpoint passes it by.
        temporary = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)


def _remove_tree(path: Path) -> None:
    """Also under the hands of somebody who still writes there, or removes it as well."""
    for last in (*[False] * (_REMOVAL_TRIES - 1), True):
        if not path.is_dir():
            return
        try:
            shutil.rmtree(path)
        except OSError as busy:
            if last or busy.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise


def _is_artefact(name: str) -> bool:
    return name.startswith(".") and (name.endswith((".crc", ".tmp")) or name == ".headrace.lock")


def _entry(key: str, stat: os.stat_result) -> Entry:
    return Entry(key, stat.st_size, f"{stat.st_mtime_ns:x}-{stat.st_size:x}", stat.st_mtime)


def _linked(source: Path, target: Path) -> bool:
    """A second name for the same content; the file system keeps it until both are gone."""
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:
        return False  # another device, no hard links here, or too many
    return True


def _write_durably(path: Path, pieces: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def _make_durably(directory: Path) -> None:
    """A directory whose own name is not on the disk takes its files with it when the power goes."""
    if directory.is_dir():
        return
    _make_durably(directory.parent)
    directory.mkdir(exist_ok=True)
    _sync_directory(directory.parent)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    """A file is on the disk when its content is, and its name: that is in the directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that know no such thing
            raise
    finally:
        os.close(descriptor)


def _named_once(temporary: Path, target: Path) -> bool:
    """False where the name is taken."""
    try:
        # The one call that fails when the name is taken and shows the whole content at once.
        target.hardlink_to(temporary)
    except FileExistsError:
        # NFS asks again when an answer was lost, and is refused by what it made itself the first time.
        return _is_same_file(temporary, target)
    except OSError as refused:
        if refused.errno not in _NO_LINKS:
            raise
        return _move_under_lock(temporary, target)
    return True


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False  # the one who had the name has gone since


def _move_under_lock(temporary: Path, target: Path) -> bool:
    """For file systems without hard links. The lock goes with the process that holds it."""
    # lockf, not flock: the JVM's file manager takes the same kind on the same file. It is per process,
    # so threads of this one queue before it.
    with _LOCKING, target.with_name(".headrace.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if target.exists():
            return False
        temporary.replace(target)
        return True


def _copy_durably(source: Path, target: Path) -> None:
    with source.open("rb") as content, target.open("wb") as file:
        shutil.copyfileobj(content, file)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _translated(action: str, path: Path) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError:
        raise NotFoundError(str(path)) from None
    except PermissionError as error:
        raise NoRightsError(
            action, str(path), needed="give the user who runs the job the rights there"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpaceError(str(path)) from error
        raise UnavailableError(str(path), error.strerror or str(error)) from error
