"""`headrace dev` with real Spark: edits, stops, kills; and the results are exact every time."""

import json
import signal

import pytest

from tests.spark.dev.project import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_life_of_edits_and_stops(project):
    """First run, a typo, a live change, new code, Ctrl-C, resume: one story, since Spark starts slowly."""
    project.add_files(3)
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)

        # A typo: named with its line and the fix; the job goes on.
        good = project.manifest.read_text()
        project.manifest.write_text(good.replace("executors:", "executers:"))
        dev.says("executers")
        assert "job.yaml:8" in dev.output
        project.add_files(1)
        dev.until("results under the typo", lambda: project.last_rows == project.expected_rows)

        # A live change does not touch the driver.
        project.manifest.write_text(good.replace("count: 1", "count: 2"))
        dev.says("AppliedLive")
        assert len(project.drivers()) == 1

        # Broken code is not taken either; the fix is a new run from the state.
        code = (project.home / "job.py").read_text()
        (project.home / "job.py").write_text(code + "\n)(\n")
        dev.says("CodeProblem")
        (project.home / "job.py").write_text(code.replace('"tag": tag', '"tag": tag + "!"'))
        # Only then more input: run 1 would work it off with the old code while it drains.
        dev.until("run 2", lambda: project.streamjob["status"]["run"]["number"] == 2)
        project.add_files(2)
        dev.until("the new code", lambda: any(call["tag"] == "one!" for call in project.calls))
        dev.until("results of run 2", lambda: project.last_rows == project.expected_rows)
        assert project.streamjob["status"]["run"]["number"] == 2

        assert dev.interrupt() == 0
        assert project.live_pids() == []
    assert project.repeated_batches == [], "a drain repeats nothing"

    project.add_files(2)
    with project.dev("--once", "--json") as dev:
        assert dev.wait() == 0, dev.output
        events = [json.loads(line) for line in dev.output.splitlines()]
    assert project.last_rows == project.expected_rows
    assert project.repeated_batches == []
    assert [event["status"]["state"] for event in events if event["event"] == "state"][-1] == "Completed"
    status = project.streamjob["status"]
    assert (status["run"]["number"], status["run"]["attempt"]["number"], status["epoch"]) == (2, 2, 3)


def test_in_a_directory_of_any_name_an_edit_keeps_the_state(tmp_path):
    """Python, Hadoop and Spark read one name of the store, and must not each find another place by it."""
    home = tmp_path / "my job é 100%"
    home.mkdir()
    project = Project(home)
    project.add_files(3)
    project.manifest.write_text(project.manifest.read_text() + "  logs: {sparkEvents: true}\n")
    with project.dev() as dev:
        dev.until("the first results", lambda: project.last_rows == project.expected_rows)
        code = (project.home / "job.py").read_text()
        (project.home / "job.py").write_text(code.replace('"tag": tag', '"tag": tag + "!"'))
        dev.until("run 2", lambda: project.streamjob["status"]["run"]["number"] == 2)
        project.add_files(2)
        dev.until("the new code", lambda: any(call["tag"] == "one!" for call in project.calls))
        dev.until("results of run 2", lambda: project.last_rows == project.expected_rows)
        assert dev.interrupt() == 0
    assert project.repeated_batches == []
    assert [path.name for path in tmp_path.iterdir()] == [home.name], "a directory beside the project"
    (store,) = (home / ".headrace/counts/store/default/counts").iterdir()
    assert [*store.glob("run-1/_events/eventlog_v2_*")], "the event log lies beside the run"


def test_killed_it_leaves_no_jvm_and_loses_nothing(project):
    project.add_files(6)
    with project.dev() as dev:
        dev.until("some results", lambda: len(project.calls) >= 2)
        with project.dev() as second:
            assert second.wait() == 2
            assert "another headrace dev" in second.output
        dev.process.send_signal(signal.SIGKILL)
        dev.process.wait()
        dev.until("the driver and its JVM to go", lambda: not project.live_pids(), ends=True)
    project.add_files(2)
    with project.dev("--once") as dev:
        assert dev.wait() == 0, dev.output
    assert project.last_rows == project.expected_rows


def test_an_error_names_the_users_own_line(project):
    project.add_files(1)
    job = project.home / "job.py"
    good = job.read_text()
    job.write_text(good.replace("rows = [row.asDict()", 'rows = [row["price"]'))
    with project.dev() as dev:
        dev.says("QueryFailed")
        line = next(n for n, text in enumerate(job.read_text().splitlines(), 1) if "price" in text)
        assert f"job.py:{line}" in dev.output
        assert "_code/" not in dev.output, "the user's file, not our copy of it"
        assert "Traceback" not in dev.output
        # The fix, once saved, goes on by itself from the state.
        job.write_text(good)
        dev.until("the fixed job", lambda: project.last_rows == project.expected_rows)


def test_a_driver_that_is_killed_is_replaced_and_the_results_stay_exact(project):
    import os

    project.add_files(4)
    with project.dev() as dev:
        dev.until("some results", lambda: len(project.calls) >= 1)
        os.kill(project.drivers()[0]["jvmPid"], signal.SIGKILL)
        project.add_files(2)
        dev.until("a second attempt's results", lambda: project.last_rows == project.expected_rows)
        assert project.streamjob["status"]["run"]["attempt"]["number"] == 2
