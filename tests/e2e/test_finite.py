"""Jobs that end by themselves, once or at the times of a schedule."""

from collections.abc import Callable

import pytest

from tests.e2e.kafka_counts import COUNT_BY_KEY, Topic, spec_for
from tests.e2e.services import Services
from tests.e2e.streamjobs import Job

pytestmark = [pytest.mark.full, pytest.mark.timeout(900, func_only=True)]


def test_a_finite_job_completes_and_a_schedule_starts_it_again(
    job_named: Callable[..., Job], topic_named: Callable[[str], Topic], services: Services
):
    job, topic = job_named("nightly"), topic_named("sales")
    job.write_code("counts-code", COUNT_BY_KEY)
    topic.produce(1000)
    job.apply({**spec_for(services, topic), "trigger": {"mode": "AvailableNow"}})
    job.wait(lambda: job.reason() == "Completed" and job.is_ready(), what="Completed", seconds=300)
    topic.wait_exact()
    assert job.live_drivers() == []
    assert job.status()["completedAt"]

    topic.produce(1000)
    job.edit({"trigger": {"schedule": "* * * * *"}})
    job.wait(lambda: job.status()["epoch"] == 2, what="the next start", seconds=120)
    job.wait(lambda: job.reason() == "Completed" and job.epoch() >= 2, what="Completed again", seconds=300)
    topic.wait_exact()
    assert job.status()["run"]["number"] == 1
    job.delete()
