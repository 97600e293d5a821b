"""How a soak looks at a real job: what the agent and Spark say, and what happens when nobody does."""

import json
from types import SimpleNamespace

import pytest
from bench.soak_record import Batch, Commit, Executor, Move
from bench.soak_stage import Limited, Stage, clear, moment

from headrace_jobs.harness.offsets import PartitionOffsets, SourceOffsets
from headrace_jobs.harness.view import FinishedBatch, Lag, QueryView, iso, to_status
from tests.cluster.api import Answer
from tests.cluster.processes import NotReadyError
from tests.cluster.provider import Cluster

NOW = 1_800_000_000.0
BOOKS = [
    {"id": "driver", "addTime": "2027-01-15T07:00:00.000GMT", "failedTasks": 0, "completedTasks": 0},
    {"id": "0", "addTime": "2027-01-15T08:00:00.000GMT", "failedTasks": 2, "completedTasks": 9},
    {
        "id": "1",
        "addTime": "2027-01-15T08:00:01.500GMT",
        "removeTime": "2027-01-15T08:01:00.000GMT",
        "failedTasks": 0,
        "completedTasks": 4,
    },
]


def a_report(*, behind: int = 30) -> dict:
    """As the driver's own code writes it."""
    partitions = {
        "soak/1": PartitionOffsets(end=70, committed=70, earliest=0),
        "soak/0": PartitionOffsets(end=130, committed=130 - behind, earliest=0, unread_since=NOW - 12.5),
    }
    offsets = SourceOffsets(at=NOW, partitions=partitions)
    since = iso(NOW - 12.5) if behind else None
    lag = Lag(known=True, rows=behind, files=None, why="", behind_since=since, offsets=offsets)
    progress = {
        "batchId": 7,
        "timestamp": iso(NOW - 20),
        "batchDuration": 4000,
        "numInputRows": 80,
        "durationMs": {"addBatch": 3000, "walCommit": 150, "commitOffsets": 50},
        "stateOperators": [{"commitTimeMs": 400, "numShufflePartitions": 2}],
        "sources": [],
        "sink": {},
    }
    batches = (
        FinishedBatch(number=6, started_at=iso(NOW - 30), seconds=3.0, rows=9, executors=None),
        FinishedBatch(number=7, started_at=iso(NOW - 20), seconds=4.0, rows=80, executors=2),
    )
    view = QueryView("counts", "id", "run", progress=progress, batch=progress, batches=batches, lag=lag)
    query = to_status(view, clock_offset=0.0)
    return {"executors": 2, "uiUrl": "http://10.0.0.1:4040", "queries": [json.loads(json.dumps(query))]}


class Job:
    namespace = "jobs"

    def __init__(self, *, report=None, error: Exception | None = None) -> None:
        self.cluster, self.said, self.error = self, report or a_report(), error
        self.asked: list[tuple[str, ...]] = []

    def status(self):
        if self.error is not None:
            raise self.error
        return {"executors": {"target": 3, "ready": 2, "decidedAt": "2027-01-15T08:00:00Z"}}

    def pods(self, role):
        return [{"status": {"phase": phase}} for phase in ("Running", "Running", "Pending", "Failed")]

    def driver(self):
        return {"metadata": {"name": "driver", "uid": "u"}}

    def agent_says(self, path):
        self.asked.append((path,))
        return self.said

    def in_driver(self, *command):
        self.asked.append(command)
        return json.dumps(BOOKS)


def test_a_look_takes_the_moments_that_the_agent_tells():
    seen = Stage(Job(), SimpleNamespace()).look()  # type: ignore[arg-type]
    assert seen is not None
    assert (seen.sample.lag_at, seen.sample.lag_seconds) == (NOW, 12.5)
    assert (seen.sample.asked, seen.sample.ready, seen.sample.pods) == (3, 2, 3)
    assert seen.sample.arrived_rows == 200
    assert seen.partition_rows == (130, 70)
    assert seen.batches == (Batch(7, NOW - 20, 4.0, 80, 2),)
    assert seen.move == Move(NOW, 3)
    assert seen.commit == Commit(7, pytest.approx(0.4))


def test_nothing_unread_is_no_lag_and_an_unknown_lag_is_none():
    seen = Stage(Job(report=a_report(behind=0)), SimpleNamespace()).look()  # type: ignore[arg-type]
    assert seen is not None and seen.sample.lag_seconds == 0.0
    report = a_report()
    report["queries"][0]["lag"] = {"known": False, "rows": None, "offsets": None, "behindSince": None}
    unknown = Stage(Job(report=report), SimpleNamespace()).look()  # type: ignore[arg-type]
    assert unknown is not None and unknown.sample.lag_seconds is None and unknown.sample.lag_at is None


@pytest.mark.parametrize(
    "error",
    [NotReadyError("x"), AssertionError("503"), TimeoutError(), ConnectionResetError(), KeyError("run")],
)
def test_who_does_not_answer_is_asked_again(error, capsys):
    stage = Stage(Job(error=error), SimpleNamespace())  # type: ignore[arg-type]
    assert stage.look() is None
    assert "no answer from the job" in capsys.readouterr().err


def test_a_mistake_of_this_program_is_none_of_the_clusters():
    with pytest.raises(ZeroDivisionError):
        Stage(Job(error=ZeroDivisionError()), SimpleNamespace()).look()  # type: ignore[arg-type]


def test_executors_are_those_of_sparks_books():
    job = Job()
    assert Stage(job, SimpleNamespace()).books() == (  # type: ignore[arg-type]
        Executor("0", NOW, None, 2, 9),
        Executor("1", NOW + 1.5, NOW + 60, 0, 4),
    )
    assert job.asked[-1][-1] == "4040"


def test_counts_that_do_not_answer_once_are_asked_again(monkeypatch):
    monkeypatch.setattr("bench.soak_stage.time.sleep", lambda _seconds: None)
    answers = [NotReadyError("cut off"), None]

    def wait_exact(*, seconds):
        if (answer := answers.pop(0)) is not None:
            raise answer

    topic = SimpleNamespace(wait_exact=wait_exact)
    assert Stage(Job(), topic).exact(seconds=60) is True  # type: ignore[arg-type]
    answers[:] = [AssertionError("expected 3, counted 4")]
    assert Stage(Job(), topic).exact(seconds=60) is False  # type: ignore[arg-type]
    assert Stage(Job(), topic).exact(seconds=0) is None  # type: ignore[arg-type]


def test_a_command_that_does_not_end_is_given_up():
    cluster = Cluster("x", None, ("sleep",), None, {})  # type: ignore[arg-type]
    with pytest.raises(NotReadyError, match="`kubectl 60` has not ended after 0 s"):
        Limited.of(cluster, 0.05).kubectl("60")


def test_what_an_earlier_run_left_goes_without_an_operator():
    done: list[tuple[str, ...]] = []

    class Api:
        def get(self, path, **query):
            if path.endswith("/streamjobs"):
                return Answer(200, {"items": [{"metadata": {"name": "soak"}}]})
            assert query == {"labelSelector": "headrace.dev/bench=soak"}
            return Answer(200, {"items": [{"metadata": {"name": "soak-jobs-x"}}]})

        def patch(self, path, body):
            done.append(("patch", path, json.dumps(body)))

        def delete(self, path):
            done.append(("delete", path))

    clear(SimpleNamespace(api=Api()))  # type: ignore[arg-type]
    jobs = "/apis/headrace.dev/v1alpha1/namespaces/soak-jobs-x/streamjobs/soak"
    assert done == [
        ("patch", jobs, '{"metadata": {"finalizers": null}}'),
        ("delete", "/api/v1/namespaces/soak-jobs-x"),
    ]


def test_moments_are_read_as_each_of_them_writes_it():
    assert moment("2027-01-15T08:00:00.000GMT") == moment("2027-01-15T08:00:00Z") == NOW
