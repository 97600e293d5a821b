"""`kubectl streamjob explain|simulate` on the ring of a job that was scaled on the simulated cluster."""

import json
from functools import cache
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.api import StreamJobStatus
from headrace.cli import connect
from headrace.cli.cluster import Answer, Cluster, Ran
from headrace.cli.kubectl import main
from headrace.cli.ring import Ring, explained
from headrace.core.autoscale.words import duration
from headrace.simulate.job import Job
from tests.sim.kube.scaled import ScaledCluster
from tests.unit.cli.fakes import a_cluster, add_job, transport_of


def a_status(attempt: str) -> StreamJobStatus:
    return StreamJobStatus.parse(
        {
            "run": {
                "number": 2,
                "revision": "r",
                "attempt": {"number": 3, "epoch": 5, "state": attempt},
            },
            "executors": {
                "replicas": 3,
                "ready": 3,
                "target": 3,
                "reason": "stays at 3 executors: fine.",
            },
        }
    )


SPEC = {"autoscaling": {"max": 8, "lagObjective": "60s"}, "executors": {"cores": 2}}
FORBIDDEN = Answer(403, {"kind": "Status", "reason": "Forbidden", "message": "no"})


@cache
def a_ring() -> str:
    cluster = ScaledCluster({"max": 8, "lagObjective": "60s"})
    cluster.steps(60, rate=100)
    cluster.steps(60, rate=500)
    return json.dumps(cluster.agents.ring)


@pytest.fixture
def cluster() -> Cluster:
    made = a_cluster()
    add_job(made, "clicks", status=a_status("Started"), **SPEC)
    transport_of(made).commands["clicks-r2-a3"] = Ran(0, a_ring(), "")
    return made


def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    monkeypatch.setattr(connect, "connect", lambda **_: cluster)
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_the_last_decisions_are_told_with_their_numbers_and_the_model(cluster, monkeypatch):
    shown = run(cluster, monkeypatch, "explain", "clicks", "--lines", "100").output
    assert "clicks: 3 of 3 executors, autoscaling Auto from 1 to 8, objective 60 s" in shown
    assert "q: a batch takes" in shown and "off on average" in shown
    assert "possible at max" in shown and "fits a batch" in shown
    assert "1 → " in shown, "a move"
    assert "stays at" in shown, "and why not"


def test_the_numbers_are_todays_and_say_how_old_they_are():
    """A job that has had enough executors for hours: what was news then is not what it does now."""
    scaled = ScaledCluster({"max": 8, "lagObjective": "60s"})
    scaled.steps(40, rate=100)
    said = len(scaled.agents.ring["decisions"])
    scaled.steps(20, rate=140)
    ring = scaled.agents.ring
    assert len(ring["decisions"]) == said and ring["decisions"][-1]["reason"] == "Enough"
    shown = explained(Ring.of(ring), now=scaled.moment, lines=3)
    assert "arrives          140 rows/s" in shown
    since = scaled.moment.timestamp() - ring["newest"]["at"]
    assert since < 90 and f"Measured {since:.3g} s ago" in shown
    assert f"Enough (for {duration(scaled.moment.timestamp() - ring['decisions'][-1]['at'])})" in shown


def test_a_broker_that_is_away_shows_within_a_minute_or_two():
    scaled = ScaledCluster({"max": 8, "lagObjective": "60s"})
    scaled.steps(40, rate=100)
    scaled.topic.away = True
    scaled.steps(6)
    assert scaled.agents.ring["decisions"][-1]["reason"] == "LagUnknown"
    assert "LagUnknown" in explained(Ring.of(scaled.agents.ring), now=scaled.moment, lines=1)


def test_a_driver_of_an_older_version_has_kept_news_only():
    content = {name: value for name, value in json.loads(a_ring()).items() if name != "newest"}
    ring = Ring.of(content)
    assert ring.newest == ring.decisions[-1]


def test_it_is_asked_in_the_drivers_pod_without_its_token(cluster, monkeypatch):
    run(cluster, monkeypatch, "explain", "clicks")
    (asked,) = [what for verb, what in transport_of(cluster).asked if verb == "run"]
    assert asked.startswith("clicks-r2-a3/driver: python3 -m headrace_jobs.harness.ask --run-file=")
    assert asked.endswith(" /v1/scaling")


def test_machines_get_the_ring_as_it_is(cluster, monkeypatch):
    told = json.loads(run(cluster, monkeypatch, "explain", "clicks", "-o", "json").output)
    assert set(told) == {"memory", "newest", "decisions", "looks"}


def test_other_limits_are_tried_on_the_jobs_own_load(cluster, monkeypatch, tmp_path):
    picture = tmp_path / "out.svg"
    options = ["--lag-objective", "30s", "--max", "12", "--plot", str(picture)]
    shown = run(cluster, monkeypatch, "simulate", "clicks", *options).output
    assert "objective 30 s, 1 to 12 executors" in shown
    assert "executor hours" in shown
    assert picture.read_text().startswith("<svg")


def test_the_job_is_simulated_as_it_is(cluster, monkeypatch, tmp_path):
    shown = run(cluster, monkeypatch, "simulate", "clicks", "--plot", str(tmp_path / "out.svg")).output
    assert "a batch every 10 s" in shown
    ring = json.loads(a_ring())
    memory = ring["memory"]["queries"]["q"]
    memory.update({"triggerSeconds": 60.0, "shufflePartitions": 4, "retentionSeconds": 7200.0})
    ring["memory"]["startupSeconds"] = 90.0
    known = Ring.of(ring)
    assert known.partitions == 8
    assert known.job == Job(
        trigger_seconds=60.0,
        fixed_seconds=memory["fit"]["fixed"],
        startup_seconds=90.0,
        shuffle_partitions=4,
        retention_seconds=7200.0,
    )
    transport_of(cluster).commands["clicks-r2-a3"] = Ran(0, json.dumps(ring), "")
    slower = run(cluster, monkeypatch, "simulate", "clicks", "--plot", str(tmp_path / "out.svg")).output
    assert "a batch every 60 s" in slower


def test_files_are_tasks_for_all_the_cores_that_are_tried(cluster, monkeypatch, tmp_path):
    ring = json.loads(a_ring())
    ring["memory"]["queries"]["q"].update({"divisible": True, "partitions": 1})
    assert Ring.of(ring).partitions is None
    transport_of(cluster).commands["clicks-r2-a3"] = Ran(0, json.dumps(ring), "")
    shown = run(cluster, monkeypatch, "simulate", "clicks", "--plot", str(tmp_path / "out.svg"))
    assert shown.exit_code == 0 and "executor hours" in shown.output


def test_a_job_without_rows_has_no_load_to_replay(cluster, monkeypatch):
    ring = json.loads(a_ring())
    ring["looks"] = [[at, 0.0, *rest] for at, _, *rest in ring["looks"]]
    transport_of(cluster).commands["clicks-r2-a3"] = Ran(0, json.dumps(ring), "")
    result = run(cluster, monkeypatch, "simulate", "clicks")
    assert result.exit_code == 1 and "no load to replay" in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lag-objective", "soon"], "--lag-objective soon"),
        (["--min", "9"], "--min 9 is above --max 8"),
    ],
)
def test_bad_options_are_named(cluster, monkeypatch, options, words):
    result = run(cluster, monkeypatch, "simulate", "clicks", *options)
    assert result.exit_code == 1
    assert words in result.output


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Ran(1, "", "the agent cannot be asked: refused"), "does not tell"),
        (Ran(0, "<html>", ""), "something else"),
        (Ran(0, '{"decisions": 3}', ""), "version"),
        (FORBIDDEN, "kubectl auth can-i create pods/exec"),
        (None, "is gone"),
    ],
)
def test_what_goes_wrong_is_said(cluster, monkeypatch, answer: Any, words: str):
    transport_of(cluster).commands = {} if answer is None else {"clicks-r2-a3": answer}
    result = run(cluster, monkeypatch, "explain", "clicks")
    assert result.exit_code == 1
    assert words in result.output


def test_without_a_driver_the_last_decision_of_the_status_is_told(monkeypatch):
    made = a_cluster()
    add_job(made, "clicks", status=a_status("Ended"), **SPEC)
    result = run(made, monkeypatch, "explain", "clicks")
    assert result.exit_code == 1
    assert "no running driver" in result.output and "stays at 3 executors" in result.output


def test_a_short_history_is_no_trace():
    assert Ring.of({"decisions": [], "looks": [[1, 5.0, 0, 0, 1, 1]], "memory": None}).trace("x") is None


def test_holes_in_the_history_are_taken_out():
    looks = [[60 * minute, 5.0, 0, 0, 1, 1] for minute in range(20)]
    looks += [[100_000 + 60 * minute, 7.0, 0, 0, 1, 1] for minute in range(20)]
    trace = Ring.of({"decisions": [], "looks": looks, "memory": None}).trace("x")
    assert trace is not None and trace.length_seconds < 3600
