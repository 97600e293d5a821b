"""The whole driver on the oldest line of Spark that Headrace says it works with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark.harness.test_endings import script
from tests.spark.sparks import OLDEST, spark_of, use_spark

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

COUNTING = script(
    """
    import json
    def keep(frame, batch_id):
        rows = {str(row["key"]): row["count"] for row in frame.collect()}
        with (place / "out.jsonl").open("a") as out:
            out.write(json.dumps({"batch": batch_id, "counts": rows}) + "\\n")

    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    counts = numbers.groupBy((F.col("value") % 5).alias("key")).count()
    counts.writeStream.queryName("counts").outputMode("update").foreachBatch(keep).start().awaitTermination()
    """
)


def test_a_job_is_killed_goes_on_exactly_and_drains(
    drive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_spark(spark_of(OLDEST), monkeypatch)
    first = drive(COUNTING)
    first.wait_for_batch("counts", 2)
    assert first.status()["sparkVersion"] == "4.1.4"
    first.kill()
    second = drive(COUNTING, attempt=2)
    second.wait_for_batch("counts", max(first.offsets("counts")) + 2)
    second.call("POST", "/v1/drain")
    assert second.end()["reason"] == "Drained", second.log()[-5000:]
    assert second.offsets("counts") == second.commits("counts")
    told = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    # Fifty rows in each batch, ten for each key, whichever attempt has written it and how often.
    assert all(each["counts"] == dict.fromkeys("01234", 10 * (each["batch"] + 1)) for each in told)
    assert sorted({each["batch"] for each in told}) == second.commits("counts")
