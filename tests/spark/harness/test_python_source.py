"""A data source in Python that tells its end: what real Spark says of it is enough for a lag."""

import pytest

from tests.spark.harness.conftest import wait_for

A_COUNTER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

place = Path(sys.argv[1])


class Counter(DataSourceStreamReader):
    def end(self):
        return int((place / "end").read_text())

    def initialOffset(self):
        return {"counter": {"at": 0}}

    def getDefaultReadLimit(self):
        return ReadMaxRows(5)

    def latestOffset(self, start, limit):
        everything = isinstance(limit, ReadAllAvailable)
        most = self.end() if everything else start["counter"]["at"] + limit.max_rows
        return {"counter": {"at": min(self.end(), most)}}

    def reportLatestOffset(self):
        return {"counter": {"at": self.end()}}

    def partitions(self, start, end):
        span = (start["counter"]["at"], end["counter"]["at"])
        return [InputPartition(span)] if span[0] < span[1] else []

    def read(self, partition):
        first, last = partition.value
        return iter([(number,) for number in range(first, last)])


class Counting(DataSource):
    @classmethod
    def name(cls):
        return "counting"

    def schema(self):
        return "number int"

    def streamReader(self, schema):
        return Counter()


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Counting)
spark.readStream.format("counting").load().writeStream.queryName("numbers").format("noop").trigger(
    processingTime="6 seconds"
).start()
spark.streams.awaitAnyTermination()
"""


@pytest.mark.full
def test_a_python_source_that_tells_its_end_has_a_lag(drive, tmp_path):
    (tmp_path / "end").write_text("23")
    driver = drive(A_COUNTER, spark_conf={"spark.sql.streaming.noDataProgressEventInterval": "500ms"})

    def lag_of(batch):
        query = driver.query("numbers")
        assert driver.process.poll() is None, driver.log()
        known = query is not None and query["committedBatch"] == batch and query["lag"]["known"]
        return query if known and query["lag"]["rows"] == max(0, 23 - 5 * (batch + 1)) else None

    first = wait_for(lambda: lag_of(0) or lag_of(1), "the lag of a Python source is not known", seconds=180)
    assert "PythonMicroBatchStream" in first["sources"][0]["description"]
    assert first["lag"]["offsets"]["live"] is False
    (partition,) = first["lag"]["offsets"]["partitions"].values()
    assert partition[0] == 23 and partition[1] in (5, 10)

    idle = wait_for(lambda: lag_of(4), "it does not read to the end", seconds=180)
    assert idle["lag"]["rows"] == 0
    # While nothing comes, Spark still tells how far the source reaches.
    later = wait_for(
        lambda: (q := driver.query("numbers"))["lag"]["offsets"]["at"] > idle["lag"]["offsets"]["at"] and q,
        "an idle source is not looked at",
    )
    assert later["lag"]["rows"] == 0
    driver.call("POST", "/v1/drain")
    assert driver.end()["reason"] == "Drained"
