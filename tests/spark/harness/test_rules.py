"""What a script may and may not do under the harness; and what it cannot notice at all."""

import json

RULES = """
import json, sys
from pathlib import Path
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession, functions as F
from headrace_jobs import run

place = Path(sys.argv[1])
told = {}

def attempt(name, action):
    try:
        told[name] = repr(action())
    except Exception as error:
        told[name] = f"{type(error).__name__}: {error}"

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
ticks = spark.readStream.format("rate").option("rowsPerSecond", 50).load()

attempt("no name", lambda: ticks.writeStream.format("noop").start())
attempt("bad name", lambda: ticks.writeStream.start(format="noop", queryName="a/b"))
attempt("start", lambda: ticks.writeStream.start(format="noop", queryName="q", checkpointLocation="/x"))
attempt("options", lambda: ticks.writeStream.options(checkpointLocation="/x"))
attempt("table", lambda: ticks.writeStream.toTable("t", checkpointLocation="/x", queryName="q"))
attempt("async", lambda: ticks.writeStream.option("asyncProgressTrackingEnabled", True))
attempt("continuous", lambda: ticks.writeStream.trigger(continuous="1 second"))
attempt("builder", lambda: SparkSession.builder.config(
    "spark.sql.streaming.stateStore.checkpointFormatVersion", 1).getOrCreate())
spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "false")
attempt("conf", lambda: ticks.writeStream.queryName("q").format("noop").start())
spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")

# All ways lead to the one session.
told["same session"] = SparkSession.builder.master("local[9]").getOrCreate() is spark
told["same context"] = SparkContext(master="local[9]").applicationId == spark.sparkContext.applicationId
told["setting"] = spark.conf.get("spark.sql.shuffle.partitions")
conf = SparkConf().set("spark.sql.session.timeZone", "UTC")
SparkSession.builder.config(conf=conf).getOrCreate()
told["conf object"] = spark.conf.get("spark.sql.session.timeZone")
with SparkSession.builder.getOrCreate() as inner:
    pass
told["alive after stop"] = spark.range(3).count()

# The run is known in the driver, in foreachBatch, and in a UDF on a worker.
seen = F.udf(lambda: f"{run.managed} {run.epoch} {run.batch_id is not None} {run.lineage() is not None}")
def write(frame, batch_id):
    if batch_id > 0:
        told["udf"] = frame.select(seen().alias("s")).first()["s"]
        told["batch"] = [run.managed, run.epoch, run.batch_id == batch_id, run.lineage() == lineage[0]]
lineage = []
first = ticks.writeStream.queryName("first").foreachBatch(write).start()
lineage.append(first.id)
told["active"] = spark.streams.active == [first] and spark.streams.get(first.id) is first
told["not yet"] = [first.awaitTermination(1), spark.streams.awaitAnyTermination(1)]
while "udf" not in told:
    first.awaitTermination(1)
first.stop()
told["stopped"] = [first.isActive, first.exception(), first.awaitTermination(1)]
told["any"] = spark.streams.awaitAnyTermination(1)
spark.streams.resetTerminated()
again = ticks.writeStream.queryName("first").foreachBatch(write).start()
told["same lineage"] = again.id == lineage[0] and again.runId != first.runId
again.stop()
(place / "told.json").write_text(json.dumps(told))
"""


def test_one_script_tries_everything(drive, tmp_path):
    driver = drive(RULES, spark_conf={"spark.sql.streaming.noDataProgressEventInterval": "1000"})
    end = driver.end()
    assert end["reason"] == "Completed", driver.log()
    told = json.loads((tmp_path / "told.json").read_text())
    for refused, fix in {
        "no name": ".queryName(",
        "bad name": "Use letters, digits",
        "start": "Remove the checkpointLocation option",
        "options": "Remove the checkpointLocation option",
        "table": "Remove the checkpointLocation option",
        "async": "Remove the option",
        "continuous": "Use trigger(processingTime=",
        "builder": "checkpointFormatVersion, which Headrace owns",
        "conf": "changelogCheckpointing.enabled, which Headrace owns",
    }.items():
        assert told[refused].startswith("Refused: "), refused
        assert fix in told[refused]
    assert told["same session"] is told["same context"] is told["active"] is told["same lineage"] is True
    assert (told["setting"], told["conf object"], told["alive after stop"]) == ("1", "UTC", 3)
    assert told["udf"] == "True 1 True True"
    assert told["batch"] == [True, 1, True, True]
    assert told["not yet"] == [False, False]
    assert (told["stopped"], told["any"]) == ([False, None, True], True)


NESTED = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").option("rowsPerSecond", 50).load()

def enrich(frame, batch_id):
    frame.join(frame.sparkSession.table("prices"), "value").count()

try:
    ticks.writeStream.queryName("enriched").foreachBatch(enrich).start().awaitTermination()
except Exception as error:
    print("the script was told:", type(error).__name__)
    raise RuntimeError("what the script makes of it") from error
"""


def test_an_error_in_foreach_batch_tells_sparks_class_and_the_users_line(drive):
    driver = drive(NESTED)
    end = driver.end()
    assert end["reason"] == "QueryFailed", driver.log()
    assert end["errorClass"] == "TABLE_OR_VIEW_NOT_FOUND"
    assert end["userFrame"]["line"] == 7
    assert end["userFrame"]["code"] == 'frame.join(frame.sparkSession.table("prices"), "value").count()'
    assert "`prices` cannot be found" in end["message"]
    assert "the script was told: StreamingQueryException\n" in driver.log(), driver.log()
