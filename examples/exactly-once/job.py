"""Events from Kafka, repeats dropped, counted by window and key into PostgreSQL: each window exactly once.

The ledger is what makes it so: docs/how-to/exactly-once-sink.md.
"""

import argparse

import psycopg
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headrace_jobs import run

QUERY = "windows"
CLAIM = """INSERT INTO ledger_fence (job, query, epoch) VALUES (%s, %s, %s)
    ON CONFLICT (job, query) DO UPDATE SET epoch = excluded.epoch
    WHERE ledger_fence.epoch <= excluded.epoch"""
NOTE = """INSERT INTO ledger (lineage, query, batch, epoch) VALUES (%s, %s, %s, %s)
    ON CONFLICT (lineage, query, batch) DO NOTHING"""

parser = argparse.ArgumentParser()
parser.add_argument("--bootstrap", required=True)
parser.add_argument("--topic", required=True)
parser.add_argument("--postgres", required=True)
parser.add_argument("--table", default="windows")
parser.add_argument("--label", default="1")
args = parser.parse_args()


def write_once(frame, batch_id):
    # Also for a batch that the ledger has: the state is made by computing the frame.
    rows = frame.collect()
    # One transaction: what is noted, the epoch and the rows are there together, or not at all.
    with psycopg.connect(args.postgres) as ledger:
        # Locks the line of this query: of two drivers the second waits here, and then sees who was first.
        if ledger.execute(CLAIM, (run.job.uid, QUERY, run.epoch)).rowcount == 0:
            raise PermissionError(f"a newer driver than that of epoch {run.epoch} writes here")
        if ledger.execute(NOTE, (run.lineage(), QUERY, batch_id, run.epoch)).rowcount == 0:
            return
        with ledger.cursor().copy(f"COPY {args.table} (begins_ms, key, n, total, label) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


spark = SparkSession.builder.getOrCreate()
records = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", args.bootstrap)
    .option("subscribe", args.topic)
    .option("startingOffsets", "earliest")
    .load()
)
event = F.from_json(F.col("value").cast("string"), "i LONG, key STRING, at_ms LONG")
events = (
    records.select(event.alias("event"))
    .select("event.i", "event.key", F.timestamp_millis("event.at_ms").alias("at"))
    .withWatermark("at", "10 seconds")
    .dropDuplicates(["i", "at"])
)
windows = (
    events.groupBy(F.window("at", "5 seconds"), "key")
    .agg(F.count("*").alias("n"), F.sum("i").alias("total"))
    .select(F.unix_millis("window.start"), "key", "n", "total", F.lit(args.label))
)
query = windows.writeStream.queryName(QUERY).outputMode("append").foreachBatch(write_once).start()
query.awaitTermination()
