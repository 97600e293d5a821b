"""Candidates that a cluster does not let start: the run that runs does not notice, and the job says why.

The tests share a job, in this order: each finds run 1 Ready, and all but the last leave it so.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.api import Api
from tests.e2e.conftest import CRAMPED
from tests.e2e.quotas import pods_at_most
from tests.e2e.services import Services
from tests.e2e.streamjobs import TICKS, Job, Object, a_spec, edited

pytestmark = [pytest.mark.full, pytest.mark.timeout(900, func_only=True)]

CODE = "cramped-code"
NO_SUCH_IMAGE = "headrace.local/no-such-image:1"
# The driver's Python has a part of 1536Mi; its container is killed for more.
HUNGRY = edited(TICKS, "ticks = SparkSession", "hoard = bytearray(4 << 30)\nticks = SparkSession")
OTHER = edited(TICKS, '.format("rate")', '.format("rate").option("rowsPerSecond", 2)')


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], services: Services) -> Iterator[Job]:
    cramped = job_named("cramped", namespace=CRAMPED)
    cramped.write_code(CODE, TICKS)
    upgrade = {"strategy": "Rehearsed", "verifyWindow": "15s", "startTimeout": "5m"}
    # Not a keeper's pod for a savepoint either: there is no room for one in the last test.
    cramped.apply(a_spec(services, code=CODE, upgrade=upgrade, savepoints={"onUpgrade": False}))
    cramped.wait_ready(seconds=400)
    cramped.wait_stable(1, seconds=400)
    yield cramped
    cramped.delete()


@pytest.fixture
def incumbent(job: Job) -> Object:
    return job.driver()


def is_untouched(job: Job, incumbent: Object) -> bool:
    same = job.driver()["metadata"]["uid"] == incumbent["metadata"]["uid"]
    return same and job.is_ready() and job.status()["run"]["attempt"]["number"] == 1


def test_one_whose_image_cannot_be_pulled_is_refused(job: Job, incumbent: Object):
    job.edit({"image": NO_SUCH_IMAGE, "upgrade": {"startTimeout": "45s"}})
    job.wait_reason("RehearsalFailed", kind="Stalled", seconds=240)
    told = job.condition("Rehearsed")
    assert told["status"] == "False"
    assert NO_SUCH_IMAGE in told["message"]
    assert is_untouched(job, incumbent)
    job.edit({"image": None, "upgrade": {"startTimeout": "5m"}})
    job.wait(lambda: job.condition("Stalled").get("status") == "False", what="no complaint", seconds=120)
    assert is_untouched(job, incumbent)


def test_one_that_runs_out_of_memory_is_refused(job: Job, incumbent: Object):
    job.write_code(CODE, HUNGRY)
    job.wait_reason("RehearsalFailed", kind="Stalled", seconds=300)
    told = job.condition("Rehearsed")
    assert (told["status"], told["reason"]) == ("False", "OutOfMemory")
    assert "spec.driver.memory" in told["message"]
    assert is_untouched(job, incumbent)


def test_without_room_for_both_it_takes_over_cold_and_says_so(job: Job, incumbent: Object, api: Api):
    # A driver and an executor: there is room for a run, and none for a candidate beside it.
    with pods_at_most(api, CRAMPED, 2):
        job.write_code(CODE, OTHER)
        job.wait_other_driver(incumbent)
        told = job.condition("Rehearsed")
        assert (told["status"], told["reason"]) == ("Unknown", "NoRoom")
        assert "exceeded quota" in told["message"]
        job.wait(lambda: job.status()["run"]["number"] == 2, what="run 2", seconds=60)
        job.wait_stable(2, seconds=400)
