"""The command: a run file in, last words out."""

import json
import threading
from pathlib import Path

from headrace_jobs.harness.source_notes import SourceNotes
from headrace_jobs.lookout.main import main
from headrace_jobs.store import open_store
from tests.unit.harness.samples import GOOD
from tests.unit.lookout.test_sources import RUN, a_checkpoint


def call(home: Path, run_file: dict) -> int:
    (home / "run.json").write_text(json.dumps(run_file))
    words = home / "words.json"
    return main([f"--run-file={home / 'run.json'}", "--every=1", f"--result={words}"])


def test_files_are_looked_at_without_any_jvm(tmp_path: Path):
    store, inbox = tmp_path / "store", tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "a.json").write_text("{}")
    a_checkpoint(store, read='{"logOffset":0}')
    note = {"kind": "files", "index": 0, "directory": str(inbox)}
    SourceNotes(lambda: open_store(store.as_uri()), RUN).keep("q", [note])
    assert call(tmp_path, {**GOOD, "run": RUN, "store": store.as_uri()}) == 0
    words = json.loads((tmp_path / "words.json").read_text())
    assert words == {"reason": "Work", "message": "1 file waits in the sources of q"}


def test_the_alarm_ends_with_the_watch(tmp_path: Path):
    """It would end the process ten minutes later, whatever that does by then."""
    store = tmp_path / "store"
    a_checkpoint(store)
    call(tmp_path, {**GOOD, "run": RUN, "store": store.as_uri()})
    alarms = [thread for thread in threading.enumerate() if thread.name == "headrace-alarm"]
    for alarm in alarms:
        alarm.join(10)
    assert not any(alarm.is_alive() for alarm in alarms)


def test_who_finds_no_note_is_blind(tmp_path: Path):
    store = tmp_path / "store"
    a_checkpoint(store)
    assert call(tmp_path, {**GOOD, "run": RUN, "store": store.as_uri()}) == 0
    assert json.loads((tmp_path / "words.json").read_text())["reason"] == "Blind"


def test_a_run_file_of_another_version_is_refused(tmp_path: Path):
    assert call(tmp_path, {**GOOD, "surprise": 1}) == 64
    assert not (tmp_path / "words.json").exists()
