from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.store import Copy, Store, directory_url, local_directory, open_store
from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.errors import (
    BadLocationError,
    NoConditionalPutError,
    NoRightsError,
    NoSpaceError,
)
from tests.unit.store.contract import PROMISES


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_contract(promise: Callable[[Store], None], tmp_path: Path) -> None:
    promise(open_store(f"file://{tmp_path}"))
    assert not list(tmp_path.rglob(".*")), "a temporary file was left behind"


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS], ids=errno.errorcode.get)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_contract_where_hard_links_are_refused(
    promise: Callable[[Store], None], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    promise(open_store(str(tmp_path)))


def test_a_name_that_was_given_though_the_answer_was_lost_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS does it: the answer to the first try is lost, and the second is refused by its result."""
    really_link = os.link

    def link_twice(*args: Any, **named: Any) -> None:
        really_link(*args, **named)
        really_link(*args, **named)

    store = open_store(str(tmp_path))
    monkeypatch.setattr(os, "link", link_twice)
    assert store.put_if_absent("run-1/_attempts/1", b"ours")
    assert not store.put_if_absent("run-1/_attempts/1", b"theirs")
    assert store.get("run-1/_attempts/1") == b"ours"


def test_artefacts_of_hadoop_and_of_killed_writers_are_no_objects(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    for name in ("1.changelog", "1.changelog.crc", ".1.changelog.crc", ".2.0b7e.tmp", ".headrace.lock"):
        (tmp_path / "r" / name).write_text("x")
    store = DirectoryStore(tmp_path)
    assert [entry.key for entry in store.list()] == ["r/1.changelog", "r/1.changelog.crc"]
    assert store.children("r") == ["1.changelog", "1.changelog.crc"]
    store.delete_many(["r/1.changelog"])
    assert not (tmp_path / "r" / ".1.changelog.crc").exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("hdfs://host/x", "unknown scheme 'hdfs'"),
        ("relative/path", "not absolute"),
        ("file://data/x", "write file:///data/x"),
    ],
)
def test_bad_locations_are_refused_with_the_fix(url: str, says: str) -> None:
    with pytest.raises(BadLocationError, match=says):
        open_store(url)


@pytest.mark.parametrize("name", ["my job é", "100%", "a%20b", "what?", "#1"])
def test_a_directory_of_any_name_is_the_one_that_its_url_leads_to(name: str, tmp_path: Path) -> None:
    """Spark is given the same text, and takes it as it is: nothing may be escaped on the way."""
    url = directory_url(tmp_path / name)
    assert url == f"file://{tmp_path}/{name}"
    assert local_directory(url) == local_directory(f"file:{tmp_path}/{name}") == tmp_path / name
    open_store(url).put("run-1/key", b"x")
    assert (tmp_path / name / "run-1/key").read_bytes() == b"x"
    assert open_store(url).url == url


def test_keys_cannot_leave_the_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    for key in ("../outside", "/etc/passwd", "a/../../outside", ""):
        with pytest.raises(BadLocationError):
            store.put(key, b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "error"),
    [(errno.ENOSPC, NoSpaceError), (errno.EACCES, NoRightsError), (errno.EDQUOT, NoSpaceError)],
)
def test_errors_of_the_disk_say_what_to_do(
    code: int, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error, match=r"free some|give the user"):
        open_store(str(tmp_path)).put("a", b"x")
    assert list(tmp_path.iterdir()) == []


def synced(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, list[str]], list[bytes]]:
    """What directories and files held when they were last synced, filled while the test goes on."""
    names: dict[str, list[str]] = {}
    contents: list[bytes] = []
    really_sync = os.fsync

    def sync(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        if place.is_dir():
            names[place.relative_to(root).as_posix()] = os.listdir(place)  # noqa: PTH208
        else:
            contents.append(place.read_bytes())
        really_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    return names, contents


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize(
    "write", [lambda store: store.put("a/b/c", b"x"), lambda store: store.put_if_absent("a/b/c", b"x")]
)
def test_a_new_file_is_on_the_disk_with_its_name_and_the_names_of_its_directories(
    write: Callable[[Store], None], link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the power goes, what was not synced goes; here: what a directory held when it was last synced."""
    kept, _ = synced(tmp_path, monkeypatch)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not link:
        monkeypatch.setattr(os, "link", refuse)
    write(open_store(str(tmp_path)))
    assert kept["."] == ["a"]
    assert kept["a"] == ["b"]
    assert "c" in kept["a/b"]


@pytest.mark.parametrize("immutable", [True, False])
@pytest.mark.parametrize(
    "copy", [lambda store, one: store.copy(one), lambda store, one: store.copy_many([one])]
)
def test_a_copy_is_on_the_disk_before_anybody_can_say_so(
    copy: Callable[[Store, Copy], None], immutable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed of a run, and the manifest of a savepoint, are written last and synced: they vouch for it."""
    store = open_store(str(tmp_path))
    store.put("run-1/commits/9", b"done")
    (entry,) = store.list()
    names, contents = synced(tmp_path, monkeypatch)
    copy(store, Copy(entry, "run-2/commits/9", immutable=immutable))
    assert sorted(names["."]) == ["run-1", "run-2"]
    assert names["run-2/commits"] == ["9"]
    assert contents == ([] if immutable else [b"done"]), "a link is to what was synced when it was written"


def test_the_probe_finds_a_server_that_ignores_the_condition(tmp_path: Path) -> None:
    class Careless(DirectoryStore):
        def put_if_absent(self, key: str, content: bytes) -> bool:
            self.put(key, content)
            return True

    with pytest.raises(NoConditionalPutError, match="If-None-Match"):
        Careless(tmp_path).probe()
    assert list(tmp_path.iterdir()) == []
