"""In which formats the logs of a query are written."""

from pathlib import Path

from headrace_jobs.store import open_store
from headrace_jobs.store.formats import formats_of, newer


def test_of_the_newest_entries(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert formats_of(store, 1, "q") == {}
    store.put("run-1/queries/q/offsets/0", b"v1\n{}\n-")
    assert formats_of(store, 1, "q") == {"offsets": 1}
    store.put("run-1/queries/q/commits/0", b"v2\n{}")
    store.put("run-1/queries/q/offsets/1", b"v2\n{}\n-")
    assert formats_of(store, 1, "q") == {"offsets": 2, "commits": 2}


def test_only_what_is_newer_is_one_way() -> None:
    before = {"offsets": 1, "commits": 2}
    assert newer(before, before) == []
    assert newer(before, {"offsets": 1, "commits": 3}) == ["commits v3"]
    assert newer(before, {"offsets": 1, "commits": 1}) == []
    assert newer({}, {"offsets": 2}) == [], "nothing to compare with"
