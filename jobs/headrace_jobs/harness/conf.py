"""The Spark settings of a driver: what the run file asks for, and what Headrace owns.

Owned settings are the ones its promises rest on (checkpoints that fence, savepoints, drain). A job that
sets one of them to something else is refused instead of being corrected behind its back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from headrace_jobs import run
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.store import run_directory
from headrace_jobs.store.s3_options import PATIENCE_CONF

FILE_MANAGER_CLASS = "dev.headrace.HeadraceCheckpointFileManager"
_ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
EVENT_LOGS = "_events"
_SAVEPOINTS = "savepoints and rollback need it"

# Session settings that user code could change at any time: checked again when a query starts.
PINNED_SESSION_CONF: Mapping[str, tuple[str, str]] = {
    "spark.sql.streaming.stateStore.providerClass": (_ROCKSDB_PROVIDER, _SAVEPOINTS),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": ("true", _SAVEPOINTS),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": ("2", _SAVEPOINTS),
    "spark.sql.streaming.checkpointFileManagerClass": (FILE_MANAGER_CLASS, "fencing and drain live in it"),
}
# Settings that must stay away: there is no value with which Headrace could keep its promises.
_FORBIDDEN_CONF: Mapping[str, str] = {
    "spark.sql.streaming.checkpointLocation": "Headrace gives every query its checkpoint location",
    "spark.remote": "a job runs in its own driver, not through Spark Connect",
    "spark.api.mode": "a job runs in its own driver, not through Spark Connect",
}
# Taken from the run file and only from there; user code that sets them (often `.master("local[*]")`, left
# over from a laptop) means no harm, so it gets a warning and goes on.
PLATFORM_CONF = frozenset(
    {"spark.master", "spark.app.name", "spark.submit.deployMode", "spark.driver.host", "spark.driver.port"}
)
# Ours as well, but the operator says it in the run file; the API keeps manifests from it.
_HOW_TO_REACH_S3 = "spark.hadoop.headrace.s3."
# What Headrace sets unless the run file says otherwise.
_DEFAULT_CONF: Mapping[str, str] = {
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    # What was committed since the last snapshot is replayed when a state is loaded, one small file per batch.
    # Spark makes snapshots once a minute: with a trigger of a second a restart would load sixty of them.
    "spark.sql.streaming.stateStore.maintenanceInterval": "30s",
    # Executors speak as loud as the driver. Their default tells of each task and of each file of the state:
    # thousands of lines a minute, at the cost of the batches.
    "spark.log.level": "WARN",
    "spark.executor.syncLogLevel.enabled": "true",
    # A fast query may finish many batches between two polls of the agent, and each one is counted.
    "spark.sql.streaming.numRecentProgressUpdates": "500",
    # The progress bar is for terminals; in a log it is noise.
    "spark.ui.showConsoleProgress": "false",
    # What code puts into Kafka options itself: Spark hides values that speak of passwords, secrets or tokens,
    # but would show a private key in plans, in the UI and in event logs.
    "spark.sql.redaction.options.regex": "(?i)url|[.]sasl[.]jaas[.]config|[.]ssl[.]keystore[.]key",
}


@dataclass(frozen=True)
class OwnedKey:
    key: str
    wanted: str | None
    why: str


def owned_key(key: str) -> OwnedKey | None:
    """The promise behind a setting, or None if users may set it."""
    if key in PINNED_SESSION_CONF:
        wanted, why = PINNED_SESSION_CONF[key]
        return OwnedKey(key, wanted, why)
    if key in _FORBIDDEN_CONF:
        return OwnedKey(key, None, _FORBIDDEN_CONF[key])
    if key.startswith("spark.hadoop.headrace.") and not key.startswith(_HOW_TO_REACH_S3):
        return OwnedKey(key, None, "it tells the attempts of a run apart")
    return None


def check_user_conf(conf: Mapping[str, str], *, where: str) -> None:
    """Refuses owned settings with another value than ours. `where` is part of the message."""
    for key, value in conf.items():
        owned = owned_key(key)
        if owned is not None and value != owned.wanted:
            raise Refused(f"{where} sets {key}, which Headrace owns ({owned.why}). Remove it")


def check_session_conf(read: Callable[[str], str | None]) -> None:
    """The last look before a query starts; `read` gives the session's value of a key, or None."""
    for key in (*PINNED_SESSION_CONF, "spark.sql.streaming.checkpointLocation"):
        value, owned = read(key), owned_key(key)
        if owned is not None and value != owned.wanted:
            raise Refused(f"the application sets {key}, which Headrace owns ({owned.why}). Remove that line")


def driver_conf(run_file: RunFile, *, jars: list[str], run_context: str) -> dict[str, str]:
    """All settings of the driver's JVM."""
    check_user_conf(run_file.spark_conf, where="sparkConf")
    conf = {**_DEFAULT_CONF, "spark.app.name": f"{run_file.job.namespace}/{run_file.job.name}"}
    if run_file.store.startswith("s3://"):
        conf |= PATIENCE_CONF
    conf |= run_file.spark_conf
    conf |= {key: wanted for key, (wanted, _) in PINNED_SESSION_CONF.items()}
    conf |= {
        "spark.jars": ",".join(filter(None, [run_file.spark_conf.get("spark.jars", ""), *jars])),
        **{f"spark.hadoop.{key}": value for key, value in fence_conf(run_file).items()},
        "spark.hadoop.headrace.writer.id": run_file.uid,
        f"spark.executorEnv.{run.VARIABLE}": run_context,
    }
    if has_event_log(run_file):
        # The one place that Spark takes as a URL, escaped, and not as a path of Hadoop's.
        conf["spark.eventLog.dir"] = quote(event_log_place(run_file), safe=":/")
    return conf


def fence_conf(run_file: RunFile) -> dict[str, str]:
    """By which the file manager knows the run it guards, as Hadoop settings."""
    return {"headrace.run.path": spark_url(run_file.run_path), "headrace.attempt": str(run_file.attempt)}


def event_log_place(run_file: RunFile) -> str:
    # Of the run, also while a candidate rehearses for it: one log, from its first session on.
    return spark_url(f"{run_file.store.rstrip('/')}/{run_directory(run_file.run)}/{EVENT_LOGS}")


def has_event_log(run_file: RunFile) -> bool:
    """Whether Headrace keeps it. One that the job sends elsewhere is the job's own affair."""
    return run_file.spark_conf.get("spark.eventLog.dir") == event_log_place(run_file)


def spark_url(url: str) -> str:
    """Spark's name for a place in a store: Hadoop's S3 client answers to s3a:// only."""
    return "s3a://" + url.removeprefix("s3://") if url.startswith("s3://") else url
