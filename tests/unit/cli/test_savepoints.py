"""`headrace savepoint …` on a state directory, as a person types it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import main
from headrace.local.layout import Layout, write_json
from headrace.local.restore import asked_restore
from headrace_jobs.store import directory_url, open_store
from headrace_jobs.store.savepoints import About, take_savepoint
from tests.unit.store.savepoints.checkpoints import FakeQuery

MANIFEST = """\
apiVersion: headrace.dev/v1alpha1
kind: StreamJob
metadata: {name: clicks}
spec: {application: {file: job.py}}
"""


class Home:
    def __init__(self, directory: Path) -> None:
        self.manifest = directory / "job.yaml"
        self.manifest.write_text(MANIFEST)
        self.layout = Layout(directory / ".headrace/clicks")
        self.store = open_store(str(self.layout.store_root / "default/clicks"))

    def run(self) -> FakeQuery:
        """As `headrace dev` leaves it: run 2 has committed batch 3."""
        write_json(
            self.layout.streamjob,
            {
                "metadata": {"namespace": "default", "name": "clicks", "uid": "u1", "generation": 1},
                "spec": {"application": {"file": "job.py"}},
                "status": {"run": {"number": 2, "revision": "abc"}},
            },
        )
        return FakeQuery(store=self.store, run="u1/run-2").batches(4)

    def __call__(self, verb: str, *rest: str, ask: str | None = None) -> Result:
        return CliRunner().invoke(main, ["savepoint", verb, str(self.manifest), *rest], input=ask)

    def json(self, verb: str, *rest: str) -> object:
        result = self(verb, *rest, "-o", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.output)


@pytest.mark.parametrize("name", ["bucket", "büro%20"])
def test_what_lies_in_a_store_is_listed_and_can_be_imported(home: Home, tmp_path: Path, name: str):
    place = tmp_path / name
    store = open_store(str(place / "shop/old"))
    FakeQuery(store=store, run="u9/run-1").batches(3)
    for number, saved in enumerate(("first", "second")):
        take_savepoint(
            store,
            run="u9/run-1",
            savepoint=f"_savepoints/{saved}",
            about=About(owner="u", job="shop/old"),
            now=datetime(2026, 1, 1 + number, tzinfo=UTC),
        )
    listed = home("list", "--in", str(place))
    assert listed.exit_code == 0, listed.output
    lines = listed.output.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["JOB", "shop/old", "shop/old"]
    newest = f"{directory_url(place)}/shop/old/_savepoints/second"
    assert lines[1].endswith(newest) and "2 savepoints" in lines
    assert f"savepoint import {home.manifest} {newest}" in listed.output
    told = home.json("list", "--in", str(place))
    assert isinstance(told, list) and told[0]["path"] == newest and told[0]["queries"][0]["batch"] == 2
    assert home("import", newest).exit_code == 0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_life_of_a_savepoint(home: Home):
    home.run()
    made = home("create", "before-change")
    assert made.exit_code == 0, made.output
    assert "Query orders: batch 3" in made.output
    assert f"Next: headrace savepoint verify {home.manifest} before-change --level State" in made.output
    checked = home("verify", "before-change")
    assert checked.exit_code == 0
    assert "fitting together" in checked.output
    (listed,) = home.json("list")
    assert (listed["name"], listed["state"], listed["verified"]) == ("before-change", "Ready", "State")
    assert listed["queries"][0]["batch"] == 3
    lines = home("list").output.splitlines()
    assert lines[0].split() == ["NAME", "STATE", "TAKEN", "CAUSE", "BATCH", "SIZE", "VERIFIED"]
    assert lines[1].split()[:2] == ["before-change", "Ready"]
    shown = home("show", "before-change")
    assert "Job:      default/clicks" in shown.output
    assert "u1/run-2" in shown.output
    gone = home("delete", "before-change", ask="y\n")
    assert gone.exit_code == 0
    assert "There is none." in home("list").output


def test_names_are_made_up_or_checked(home: Home):
    home.run()
    assert home.json("create")["name"].startswith("clicks-20")
    bad = home("create", "Before Change")
    assert bad.exit_code == 2
    assert "try 'before-change'" in bad.output
    home("create", "one")
    again = home("create", "one")
    assert again.exit_code == 2
    assert "choose another name" in again.output


def test_what_is_not_there_is_said_with_what_there_is(home: Home):
    early = home("create")
    assert early.exit_code == 2
    assert f"headrace dev {home.manifest}" in early.output
    home.run()
    home("create", "one")
    for verb in ("show", "verify", "restore", "delete"):
        result = home(verb, "two", *(["--yes"] if verb in ("restore", "delete") else []))
        assert result.exit_code == 2
        assert "Name one of: one" in result.output


def test_a_damaged_one_is_known_and_not_restored(home: Home):
    home.run()
    home("create", "one")
    (home.layout.store_root / "default/clicks/_savepoints/one/data-1/queries/orders/commits/3").unlink()
    checked = home("verify", "one")
    assert checked.exit_code == 1
    assert "commits/3 is missing" in checked.output
    refused = home("restore", "one", "--yes")
    assert refused.exit_code == 2
    assert "is damaged" in refused.output
    assert asked_restore(home.layout) is None


def test_restoring_asks_and_leaves_a_request_for_headrace_dev(home: Home):
    home.run()
    home("create", "one")
    assert home("restore", "one", ask="n\n").exit_code == 1
    assert asked_restore(home.layout) is None
    done = home("restore", "one", "--yes")
    assert done.exit_code == 0
    assert f"The next headrace dev {home.manifest} starts it from one." in done.output
    first = asked_restore(home.layout)
    assert first is not None
    assert first.startswith("one@")
    home("restore", "one", "--yes")
    assert asked_restore(home.layout) != first, "another request"


def test_a_savepoint_of_another_place_is_imported(home: Home, tmp_path: Path):
    elsewhere = Home(tmp_path / "other" if (tmp_path / "other").mkdir() is None else tmp_path)
    elsewhere.run()
    elsewhere("create", "gold")
    path = elsewhere.json("show", "gold")["path"]
    home.run()
    made = home("import", path.removeprefix("file://"))
    assert made.exit_code == 0, made.output
    assert home("verify", "gold").exit_code == 0
    twice = home("import", path, "gold")
    assert twice.exit_code == 2
    assert "choose another name" in twice.output
    missing = home("import", "file:///nowhere/at/all")
    assert missing.exit_code == 2
    assert "there is no savepoint at" in missing.output
