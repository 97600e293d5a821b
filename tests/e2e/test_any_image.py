"""A job's image needs Spark and Python, and nothing of Headrace: shown with another Spark line than ours."""

from collections.abc import Callable

import pytest

from tests.cluster.provider import Cluster
from tests.e2e.kafka_counts import committed
from tests.e2e.services import Services
from tests.e2e.streamjobs import Job, a_spec
from tests.e2e.testimages import FOREIGN

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200, func_only=True)]

COUNT_TICKS = """
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
print("this is Spark", spark.version)
ticks = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
counts = ticks.groupBy((F.col("value") % 5).alias("key")).count()
counts.writeStream.queryName("ticks").outputMode("update").format("noop").start().awaitTermination()
"""


def test_an_image_that_has_never_heard_of_headrace(
    cluster: Cluster, services: Services, job_named: Callable[..., Job]
):
    image = FOREIGN.to_load()
    cluster.load(image)
    job = job_named("ticks")
    job.write_code("ticks-code", COUNT_TICKS)
    job.apply({**a_spec(services, code="ticks-code"), "image": image.reference})
    driver = job.wait_ready(seconds=400)
    assert "this is Spark 4.3.0" in cluster.kubectl("logs", "-n", job.namespace, driver["metadata"]["name"])
    run = f"{job.store_prefix()}/run-1"
    job.wait(
        lambda: len(committed(services, run, "ticks")[1]) >= 3,
        what="three committed batches in S3",
        seconds=180,
    )
    job.edit({"suspend": True})
    job.wait_reason("Suspended", seconds=120)
    offsets, commits = committed(services, run, "ticks")
    assert max(offsets) == max(commits)
    job.delete()
