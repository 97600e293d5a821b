"""The workers: results of a pass, and what follows from each."""

import asyncio
import random
from typing import Any

import pytest

from headrace.kube.errors import Conflict, Denied, Unavailable
from headrace.kube.resources import CONFIG_MAPS, EVENTS
from headrace.runtime.job_metrics import JobMetrics
from headrace.runtime.leading import NoLongerLeader
from headrace.runtime.metrics import Metrics
from headrace.runtime.monitor import Monitor
from headrace.runtime.queue import WorkQueue
from headrace.runtime.scaling import Scaling
from headrace.runtime.workers import Workers
from tests.sim.kube.cluster import JOB, KEY, NAMESPACE, FakeCluster


class Failing:
    """A reconciler that fails as it is told, and then is the real one."""

    def __init__(self, real: Any, *failures: BaseException) -> None:
        self.real, self.failures, self.passes = real, list(failures), 0

    async def reconcile(self, key: Any) -> Any:
        self.passes += 1
        if self.failures:
            raise self.failures.pop(0)
        return await self.real.reconcile(key)


def workers_of(cluster: FakeCluster, *failures: BaseException) -> Workers:
    cluster.hear()
    metrics = JobMetrics(lambda: cluster.moment)
    return Workers(
        reconciler=Failing(cluster.operator, *failures),  # type: ignore[arg-type]
        savepoints=cluster.savepointer,
        queue=WorkQueue(chance=random.random),
        monitor=Monitor(
            agents=cluster.agents,
            metrics=metrics,
            scaling=Scaling(agents=cluster.agents, metrics=metrics, now=lambda: cluster.moment),
            clock=lambda: 0.0,
        ),
        metrics=Metrics(),
        job_metrics=metrics,
        clock=lambda: cluster.moment.timestamp(),  # noqa: PLW0108 (it moves)
    )


def results(workers: Workers) -> dict[str, float]:
    (family,) = workers.metrics.reconciles.collect()
    return {
        one.labels["result"]: one.value for one in family.samples if one.value and one.name.endswith("_total")
    }


@pytest.mark.parametrize(
    ("failure", "result"),
    [
        (Conflict("modified"), "conflict"),
        (Denied("exceeded quota"), "refused"),
        (Unavailable("down"), "error"),
        (ValueError("a fault of ours"), "error"),
    ],
)
def test_a_pass_that_fails_is_counted_and_comes_again(failure: Exception, result: str):
    workers = workers_of(FakeCluster(), failure)
    asyncio.run(workers.work_on(KEY))
    assert results(workers) == {result: 1}
    assert workers.queue.next_alarm() is not None


def test_who_no_longer_leads_stops():
    workers = workers_of(FakeCluster(), NoLongerLeader())
    with pytest.raises(NoLongerLeader):
        asyncio.run(workers.work_on(KEY))


def series_of_jobs(workers: Workers) -> list[str]:
    return [one.name for family in workers.job_metrics.collect() for one in family.samples if one.labels]


def test_a_job_that_is_gone_is_forgotten():
    cluster = FakeCluster()
    workers = workers_of(cluster)
    asyncio.run(workers.work_on(KEY))
    assert workers.queue.next_alarm() is not None  # something is under way
    assert series_of_jobs(workers)
    cluster.api.remove(cluster.job_place)
    cluster.hear()
    asyncio.run(workers.work_on(KEY))
    assert workers.queue.next_alarm() is None
    assert not series_of_jobs(workers)


def test_woken_workers_work_until_they_are_stopped():
    cluster = FakeCluster()
    workers = workers_of(cluster)

    async def work() -> None:
        running = asyncio.create_task(workers.run(3))
        workers.wake(KEY)
        async with asyncio.timeout(10):
            while not cluster.status.conditions:
                await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(work())
    assert results(workers)["ok"] >= 1


def test_words_of_a_newer_operator_are_left_alone_and_said():
    cluster = FakeCluster()
    cluster.settle()
    cluster.edit(application={"args": ["--x"]})
    step = {"kind": "Upgrade", "step": "Levitating", "fromRun": 1, "toRun": 2, "revision": "abc"}
    cluster.api.set(cluster.job_place, {"status": {"operation": step}})
    before = cluster.api.objects[cluster.job_place]
    workers = workers_of(cluster)
    asyncio.run(workers.work_on(KEY))
    assert results(workers) == {"refused": 1}
    assert cluster.api.objects[cluster.job_place] == before
    assert cluster.live_drivers() == ["clicks-r1-a1"]
    (told,) = [one for one in cluster.api.of(EVENTS).values() if one["reason"] == "UnreadableStatus"]
    assert told["message"].startswith("status.operation.step: ")
    assert "newer Headrace" in told["message"]


def test_a_job_that_cannot_start_has_metrics_all_the_same_and_comes_again_later():
    """Else no alert would tell of it: every pass of it ends so."""
    cluster = FakeCluster()
    meta = {"name": f"{JOB}-r1-a1", "namespace": NAMESPACE}
    cluster.api.put_new(CONFIG_MAPS, {"metadata": meta, "data": {}})
    workers = workers_of(cluster)
    for _ in range(2):
        asyncio.run(workers.work_on(KEY))
    assert results(workers) == {"refused": 2}
    told = {one.name: one.value for family in workers.job_metrics.collect() for one in family.samples}
    assert (told["headrace_job_ready"], told["headrace_job_stalled"]) == (0.0, 1.0)
    alarm = workers.queue.next_alarm()
    assert alarm is not None and alarm > cluster.moment.timestamp()
