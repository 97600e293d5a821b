"""One attempt of a job that writes with Spark's file sink: `python -m tests.spark.savepoints.filesink SPEC`.

Prints, as JSON, how Spark names its sink, and what a reader finds in the output afterwards.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

from tests.spark.checkpoint.driver import Spec, session
from tests.spark.checkpoint.jobs import JOBS


def main(path: str) -> None:
    spec = Spec(**json.loads(Path(path).read_text()))
    spark = session(spec)
    claim = spark._jvm.dev.headrace.CheckpointControl.claim
    claim(spec.run_uri, spec.attempt, "{}", spark._jsc.hadoopConfiguration())
    output = f"{spec.output}/files"
    frame = JOBS[spec.job].build(spark, spec.input)
    writer = frame.writeStream.format("parquet").option("path", output).queryName("q")
    writer = writer.option("checkpointLocation", f"{spec.run_uri}/queries/q")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    rows = Counter(json.dumps(list(row)) for row in spark.read.parquet(output).collect())
    print(json.dumps({"sink": query.lastProgress["sink"]["description"], "rows": rows}), flush=True)  # noqa: T201
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
