"""The places a checkpoint can live in, as tests see them: the same questions for a directory and for S3."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace_jobs.store import Store, open_store
from headrace_jobs.store.s3_options import S3Options, spark_conf
from tests.spark.checkpoint.faultproxy import FaultProxy
from tests.spark.s3server import ENVIRONMENT, S3Server


@dataclass(frozen=True)
class Place:
    """An empty root of a job. `uri` is how Spark names it, `store` is how Headrace's own code sees it."""

    uri: str
    store: Store
    conf: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def files(self) -> list[str]:
        return [entry.key for entry in self.store.list()]


def directory_place(path: Path) -> Place:
    return Place(uri=f"file://{path}", store=open_store(str(path)))


def s3_place(bucket: str, options: S3Options, prefix: str = "ns/job/uid") -> Place:
    return Place(
        uri=f"s3a://{bucket}/{prefix}",
        store=open_store(f"s3://{bucket}/{prefix}", options),
        conf=spark_conf(options),
        environment=ENVIRONMENT,
    )


def place_behind(proxy: FaultProxy, server: S3Server) -> Place:
    """Spark goes through the proxy; the test's own look at the store goes past it."""
    bucket = server.new_bucket()
    behind = s3_place(bucket, server.options(endpoint=proxy.endpoint))
    return replace(behind, store=s3_place(bucket, server.options()).store)
