"""The Spark settings that Headrace owns: each with the reason, and the field to use instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from headrace.api.edits import Remove, Rename
from headrace.api.forms import free_text
from headrace.api.model import Broken


@dataclass(frozen=True)
class OwnedKeys:
    """Settings owned for one reason. A key that ends with `*` stands for all that begin like it."""

    keys: tuple[str, ...]
    reason: str
    instead: str | None = None
    but_not: tuple[str, ...] = ()

    def owns(self, key: str) -> bool:
        return key not in self.but_not and any(
            key.startswith(owned[:-1]) if owned.endswith("*") else key == owned for owned in self.keys
        )

    @property
    def message(self) -> str:
        return self.reason + (f"; use {self.instead}" if self.instead else "")

    @property
    def cel(self) -> str:
        exact = ", ".join(f"'{key}'" for key in self.keys if not key.endswith("*"))
        tests = [f"k in [{exact}]"] if exact else []
        tests += [f"k.startsWith('{key[:-1]}')" for key in self.keys if key.endswith("*")]
        allowed = "".join(f"k == '{key}' || " for key in self.but_not)
        return f"self.all(k, {allowed}!({' || '.join(tests)}))"


_STREAMING = "spark.sql.streaming"

OWNED: tuple[OwnedKeys, ...] = (
    OwnedKeys(
        (f"{_STREAMING}.checkpointLocation",),
        "Headrace gives every run a checkpoint path of its own",
        "checkpoint.location",
    ),
    OwnedKeys(
        (f"{_STREAMING}.checkpointFileManagerClass",),
        "checkpoints go through Headrace's own file manager, which fences old drivers and drains",
    ),
    OwnedKeys(
        (f"{_STREAMING}.stateStore.*",),
        "savepoints and upgrades rely on RocksDB with changelogs and state format 2, fixed in the checkpoint",
        "state.memory for its memory",
        # How values are encoded decides which schema changes transformWithState allows: the job's own choice.
        but_not=(f"{_STREAMING}.stateStore.encodingFormat",),
    ),
    OwnedKeys(
        (f"{_STREAMING}.asyncProgressTracking*",),
        "asynchronous progress leaves gaps in the offset log, so that no savepoint can be taken",
    ),
    OwnedKeys(
        (f"{_STREAMING}.minBatchesToRetain",),
        "savepoints, rehearsals and rollbacks need the last 100 batches",
    ),
    OwnedKeys(
        (f"{_STREAMING}.stopTimeout", "spark.streaming.stopGracefullyOnShutdown"),
        "Headrace stops queries by draining them at the end of a batch",
        "drainTimeout",
    ),
    OwnedKeys(
        (f"{_STREAMING}.stopActiveRunOnRestart",),
        "Headrace makes sure that a checkpoint has one writer",
    ),
    OwnedKeys(
        ("spark.sql.shuffle.partitions",),
        "the number of state partitions is fixed in the checkpoint",
        "state.partitions",
    ),
    OwnedKeys(
        ("spark.master", "spark.submit.deployMode", "spark.app.id", "spark.remote", "spark.api.mode"),
        "Headrace starts the driver, on a cluster and on a laptop",
    ),
    OwnedKeys(
        (
            "spark.driver.host",
            "spark.driver.bindAddress",
            "spark.driver.port",
            "spark.driver.blockManager.port",
            "spark.blockManager.port",
        ),
        "executors find the driver through the Service that Headrace makes",
    ),
    OwnedKeys(
        ("spark.driver.cores", "spark.driver.memory", "spark.driver.memoryOverhead*"),
        "the size of the driver has fields of its own",
        "driver.cores, driver.memory and driver.memoryOverhead",
    ),
    OwnedKeys(
        (
            "spark.executor.cores",
            "spark.executor.memory",
            "spark.executor.memoryOverhead*",
            "spark.executor.pyspark.memory",
        ),
        "the size of the executors has fields of its own",
        "executors.cores, executors.memory and executors.memoryOverhead",
    ),
    OwnedKeys(
        ("spark.executor.instances", "spark.cores.max"),
        "Headrace scales the executors while the job runs",
        "executors.count",
    ),
    OwnedKeys(
        ("spark.dynamicAllocation.*", "spark.streaming.dynamicAllocation.*"),
        "Spark's dynamic allocation follows the task queue, not the lag, and would fight with Headrace",
        "autoscaling",
    ),
    OwnedKeys(
        ("spark.decommission.enabled", "spark.storage.decommission.*"),
        "executors leave through decommissioning, so that scaling down costs no batch",
    ),
    OwnedKeys(
        ("spark.kubernetes.*",),
        "Headrace makes the pods",
        "driver and executors, and their patch for what has no field",
    ),
    OwnedKeys(("spark.jars",), "Headrace adds a jar of its own", "application.jars"),
    OwnedKeys(("spark.submit.pyFiles",), "Headrace brings the code to the pods", "application.pyFiles"),
    OwnedKeys(
        (
            "spark.hadoop.fs.s3a.access.key",
            "spark.hadoop.fs.s3a.secret.key",
            "spark.hadoop.fs.s3a.session.token",
            "spark.hadoop.fs.s3a.aws.credentials.provider",
        ),
        "keys do not belong in a manifest",
        "checkpoint.s3.credentials, or workload identity",
    ),
    OwnedKeys(
        (
            "spark.hadoop.fs.s3a.endpoint",
            "spark.hadoop.fs.s3a.endpoint.region",
            "spark.hadoop.fs.s3a.path.style.access",
            "spark.hadoop.fs.s3a.encryption.*",
            "spark.hadoop.fs.s3a.server-side-encryption*",
        ),
        "how S3 is reached has fields of its own, for Spark and for Headrace's store",
        "checkpoint.s3",
    ),
    OwnedKeys(("spark.hadoop.headrace.*",), "these are Headrace's own settings"),
)


def owner_of(key: str) -> OwnedKeys | None:
    """Why Headrace owns a setting; None if it is the user's."""
    return next((owned for owned in OWNED if owned.owns(key)), None)


def _problem_with(key: str) -> Broken | None:
    if not key.startswith("spark."):
        return Broken(
            message=f"{key} is not a setting of Spark: they all begin with spark.",
            at=(key,),
            fix=f"write it as spark.hadoop.{key} if it is one of Hadoop's, or remove it",
            edits=(Rename((key,), f"spark.hadoop.{key}"),) if key.startswith("fs.") else (Remove((key,)),),
        )
    if owned := owner_of(key):
        instead = f"; use {owned.instead}" if owned.instead else ""
        return Broken(
            message=f"{key} is owned by Headrace: {owned.reason}",
            at=(key,),
            fix=f"remove it{instead}",
            edits=(Remove((key,)),),
        )
    return None


def _refuse_owned(conf: dict[str, str]) -> dict[str, str]:
    broken = tuple(found for key in conf if (found := _problem_with(key)))
    if broken:
        summary = "; ".join(each.message for each in broken)
        raise PydanticCustomError("rules", "{summary}", {"summary": summary, "broken": broken})
    return conf


_MAX_SETTINGS = 256
_VALUE = free_text("a text", max_length=4096)


def _schema() -> dict[str, Any]:
    rules = [
        {"rule": "self.all(k, k.startsWith('spark.'))", "message": "settings of Spark begin with spark."}
    ]
    rules += [{"rule": owned.cel, "message": f"{_named(owned)}: {owned.message}"} for owned in OWNED]
    return {
        "type": "object",
        "additionalProperties": _VALUE.json_schema(),
        "maxProperties": _MAX_SETTINGS,
        "x-kubernetes-validations": rules,
    }


def _named(owned: OwnedKeys) -> str:
    return f"{', '.join(owned.keys)} {'is' if len(owned.keys) == 1 else 'are'} owned by Headrace"


SparkConf = Annotated[
    dict[str, Annotated[str, _VALUE]], AfterValidator(_refuse_owned), WithJsonSchema(_schema())
]
