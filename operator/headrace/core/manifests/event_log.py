"""Spark's settings for an event log beside the run, on a cluster and on a laptop."""

from __future__ import annotations

from headrace.api import StreamJobSpec


def event_log_conf(spec: StreamJobSpec, *, store: str, run: int) -> dict[str, str]:
    if not spec.logs.spark_events:
        return {}
    # Hadoop's S3 client answers to s3a:// only.
    place = "s3a://" + store.removeprefix("s3://") if store.startswith("s3://") else store
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{place}/run-{run}/_events",
        "spark.eventLog.compress": "true",
        # A stream goes on for months: in files that can be read, and compacted, while it does.
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "32m",
    }
