"""What waits in the sources of a run whose driver has ended: from its checkpoint and the driver's notes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace_jobs.harness.offsets import LookFailed
from headrace_jobs.harness.source_notes import Note, NotNoted, SourceNotes, kafka_note
from headrace_jobs.lookout.sources import Sources, committed_in
from headrace_jobs.store import open_store

KAFKA: Note = {"kind": "kafka", "params": {"bootstrap.servers": "k:9092"}, "topics": {"subscribe": "clicks"}}
RUN = 3


class Topics:
    def __init__(self, ends: Mapping[str, tuple[int, int]], retention: float | None = None) -> None:
        self.ends, self.retention = ends, retention

    def look(self) -> tuple[Mapping[str, tuple[int, int]], float | None]:
        return self.ends, self.retention


def a_checkpoint(
    home: Path, query: str = "q", *, read: str = '{"clicks":{"0":10,"1":4}}', pending: bool = False
) -> None:
    place = home / f"run-{RUN}" / "queries" / query
    for log in ("offsets", "commits"):
        (place / log).mkdir(parents=True)
    (place / "offsets" / "0").write_text('v1\n{}\n{"clicks":{"0":1,"1":1}}')
    (place / "offsets" / "1").write_text(f"v1\n{{}}\n{read}")
    (place / "commits" / "0").write_text("v1\n{}")
    if not pending:
        (place / "commits" / "1").write_text("v1\n{}")


def sources(home: Path, topics: Topics, notes: list[Note] | None = None, query: str = "q") -> Sources:
    store = open_store(home.as_uri())
    assert SourceNotes(lambda: store, RUN).keep(query, [KAFKA] if notes is None else notes) is None
    return Sources(store, RUN, lambda _note: topics)


def test_what_was_read_to_the_end_is_no_work(tmp_path: Path):
    a_checkpoint(tmp_path)
    seen = sources(tmp_path, Topics({"clicks/0": (10, 0), "clicks/1": (4, 0)}, 3600.0)).look()
    assert (seen.work, seen.retention_seconds) == (None, 3600.0)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"clicks/0": (12, 0), "clicks/1": (9, 0)}, "7 rows wait (clicks/1 has 5)"),
        ({"clicks/0": (10, 0), "clicks/1": (4, 0), "clicks/2": (8, 3)}, "5 rows wait (clicks/2 has 5)"),
        ({"clicks/0": (2, 0), "clicks/1": (4, 0)}, "made anew"),
        ({"clicks/0": (20, 15), "clicks/1": (4, 0)}, "5 rows wait"),
    ],
)
def test_what_came_since_is_work(tmp_path: Path, ends: dict[str, tuple[int, int]], said: str):
    a_checkpoint(tmp_path)
    work = sources(tmp_path, Topics(ends)).look().work
    assert work is not None and said in work and work.endswith("in the sources of q")


def test_rows_that_nobody_can_read_any_more_do_not_wake_it(tmp_path: Path):
    a_checkpoint(tmp_path)
    assert sources(tmp_path, Topics({"clicks/0": (20, 20), "clicks/1": (4, 0)})).look().work is None


def test_a_batch_that_was_begun_is_work(tmp_path: Path):
    a_checkpoint(tmp_path, pending=True)
    work = sources(tmp_path, Topics({"clicks/0": (10, 0), "clicks/1": (4, 0)})).look().work
    assert work == "a batch of q was begun and has not ended"


def test_a_query_of_an_earlier_version_is_not_looked_at(tmp_path: Path):
    """Its state was copied with the others', and no driver of this run has noted it."""
    a_checkpoint(tmp_path)
    a_checkpoint(tmp_path, "old", pending=True)
    assert sources(tmp_path, Topics({"clicks/0": (10, 0), "clicks/1": (4, 0)})).look().work is None


def test_without_a_note_nobody_can_look(tmp_path: Path):
    a_checkpoint(tmp_path)
    with pytest.raises(NotNoted, match="no note"):
        Sources(open_store(tmp_path.as_uri()), RUN, lambda _note: Topics({})).look()


def test_files_that_were_not_read_are_work(tmp_path: Path):
    a_checkpoint(tmp_path, read='{"logOffset":0}')
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "a.json").write_text("{}")
    log = tmp_path / f"run-{RUN}" / "queries" / "q" / "sources" / "0"
    log.mkdir(parents=True)
    taken = {"path": (inbox / "a.json").as_uri(), "timestamp": 1, "batchId": 0}
    (log / "0").write_text("v1\n" + json.dumps(taken))
    note: Note = {"kind": "files", "index": 0, "directory": str(inbox), "pattern": "*.json"}
    looked = sources(tmp_path, Topics({}), [note])
    (inbox / "a.json.md5").write_text("no data")
    assert looked.look().work is None
    (inbox / "b.json").write_text("{}")
    assert looked.look().work == "1 file waits in the sources of q"
    for file in inbox.iterdir():
        file.unlink()
    inbox.rmdir()
    with pytest.raises(LookFailed, match="inbox cannot be counted: No such file"):
        looked.look()


def test_directories_may_be_named_by_a_pattern(tmp_path: Path):
    a_checkpoint(tmp_path, read='{"logOffset":0}')
    (tmp_path / "inbox-a" / "day").mkdir(parents=True)
    note: Note = {"kind": "files", "index": 0, "directory": f"{tmp_path}/inbox-*/day"}
    looked = sources(tmp_path, Topics({}), [note])
    assert looked.look().work is None
    (tmp_path / "inbox-a" / "day" / "a.json").write_text("{}")
    assert looked.look().work == "1 file waits in the sources of q"


def test_of_a_topic_that_is_read_twice_the_slower_reader_counts():
    assert committed_in({"0": {"t": {"0": 7}}, "1": {"t": {"0": 5, "1": 2}}, "2": None, "3": "x"}) == {
        "t/0": 5,
        "t/1": 2,
    }


# ---- the notes ------------------------------------------------------------------------------------------


def test_a_secret_is_never_noted():
    given = {"bootstrap.servers": "k:9092", "sasl.jaas.config": 'Login required password="x";'}
    options = {"subscribe": "clicks", "assign": None}
    with pytest.raises(NotNoted, match=r"kafka\.sasl\.jaas\.config itself"):
        kafka_note(given, options, references=())
    noted = kafka_note(given, options, references=[given["sasl.jaas.config"]])
    assert noted == {"kind": "kafka", "params": given, "topics": {"subscribe": "clicks"}}


@pytest.mark.parametrize("key", ["ssl.truststore.password", "ssl.keystore.key", "sasl.oauthbearer.token"])
def test_what_kafka_puts_in_itself_is_no_secret(key: str):
    options = {"subscribepattern": "clicks.*"}
    assert kafka_note({key: "${env:PASSWORD}"}, options, references=())["params"] == {key: "${env:PASSWORD}"}
    with pytest.raises(NotNoted):
        kafka_note({key: "hunter2"}, options, references=())


def test_a_note_is_written_once_and_again_when_it_changes(tmp_path: Path):
    opened: list[int] = []
    store = open_store(tmp_path.as_uri())

    def counted():
        opened.append(1)
        return store

    notes = SourceNotes(counted, RUN)
    assert [notes.keep("q", [KAFKA]) for _ in range(3)] == [None] * 3
    assert len(opened) == 1
    notes.keep("q", [{**KAFKA, "topics": {"subscribe": "others"}}])
    assert len(opened) == 2
    content = json.loads((tmp_path / f"run-{RUN}" / "_sources" / "q.json").read_text())
    assert content["sources"][0]["topics"] == {"subscribe": "others"}
