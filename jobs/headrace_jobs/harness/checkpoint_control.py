"""Calls into the JVM's checkpoint control."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.conf import fence_conf, spark_url
from headrace_jobs.harness.control import Batches, Fenced, StoreUnavailable
from headrace_jobs.harness.failure import FENCED_CLASS
from headrace_jobs.harness.jvm_errors import innermost
from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.store import StoreError, newest_claim

_STATE_STORE = "spark.sql.streaming.stateStore."
# Spark 4.2 has stores whose snapshot lags behind make one with their next commit. It looks at these settings
# of the session with every batch, while the queries have their own, from when they started.
_FORCE = f"{_STATE_STORE}forceSnapshotUploadOnLag"
_LAGS_AT_ONCE = {
    f"{_STATE_STORE}multiplierForMinVersionDiffToLog": "1",
    f"{_STATE_STORE}minDeltasForSnapshot": "1",
    f"{_STATE_STORE}multiplierForMinTimeDiffToLog": "1",
    f"{_STATE_STORE}maintenanceInterval": "1s",
    # It warns of each store that lags: here that is no news.
    f"{_STATE_STORE}maxLaggingStoresToReport": "0",
}


def check_claim_is_seen(run_file: RunFile) -> None:
    """Spark has claimed the run: what copies and saves its state must find that, or it would copy nothing."""
    try:
        seen = newest_claim(store_of(run_file), run_file.directory)
    except StoreError as error:
        raise StoreUnavailable(f"the claim on {run_file.run_path} cannot be read: {error}") from error
    if seen is None or seen < run_file.attempt:
        raise StoreUnavailable(
            f"the claim that Spark has made on {run_file.run_path} is not there for Headrace: the two do not "
            "mean the same place. Choose another checkpoint.location, and look for wrong fs.s3a settings in "
            "spec.sparkConf"
        )


@dataclass(frozen=True)
class CheckpointControl:
    """Calls into dev.headrace.CheckpointControl."""

    session: Any
    assignment: Assignment

    def claim(self, run_file: RunFile, body: str) -> None:
        """Takes the run for this attempt; raises Fenced if an attempt as new as this one has it."""
        run_path = spark_url(run_file.run_path)
        try:
            self._java.claim(run_path, run_file.attempt, body, self._hadoop_conf)
        except Py4JJavaError as error:
            cause: Any = error.java_exception
            if cause.getClass().getName() == FENCED_CLASS:
                raise Fenced(cause.getMessage()) from None
            raise StoreUnavailable(f"{run_path} cannot be claimed: {cause.getMessage()}") from None
        check_claim_is_seen(run_file)

    def want_snapshots(self) -> bool:
        """From its next batch but one on, each state store makes a snapshot as soon as it has none that is
        quite new. Not to be taken back; False where this Spark cannot (4.1), or the job does not want it."""
        conf = self.session.conf
        if not conf.isModifiable(_FORCE) or conf.get(_FORCE) != "true":
            return False
        for key, value in _LAGS_AT_ONCE.items():
            conf.set(key, value)
        return True

    def drain(self, timeout_seconds: float) -> bool:
        """From now on no batch begins; True when every batch that has begun can be seen in `batches`."""
        return bool(self._java.drain(int(timeout_seconds * 1000)))

    def batches(self) -> dict[str, Batches]:
        """Raises StoreUnavailable where they cannot be read."""
        run_path = spark_url(self.assignment.run_file.run_path)
        try:
            told = json.loads(self._java.batches(run_path, self._hadoop_conf))
        except Py4JJavaError as error:
            raise StoreUnavailable(f"the logs of {run_path} cannot be read: {innermost(error)}") from None
        return {name: Batches(entry["offsets"], entry["commits"]) for name, entry in told.items()}

    def guard(self, run_file: RunFile) -> None:
        """Queries that start from now on write below this run, as this attempt, or not at all.

        Each of them copies the settings when it starts, and gives them to its executors.
        """
        for key, value in fence_conf(run_file).items():
            self._hadoop_conf.set(key, value)

    def end_after(self, checkpoint: str, last_batch: int) -> None:
        self._java.endAfter(spark_url(checkpoint), last_batch)

    @property
    def _java(self) -> Any:
        return self.session._jvm.dev.headrace.CheckpointControl

    @property
    def _hadoop_conf(self) -> Any:
        return self.session._jsc.hadoopConfiguration()
