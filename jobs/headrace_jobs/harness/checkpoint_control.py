"""Calls into the JVM's checkpoint control."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from headrace_jobs.harness.control import Batches, Fenced, StoreUnavailable
from headrace_jobs.harness.failure import FENCED_CLASS


@dataclass(frozen=True)
class CheckpointControl:
    """Calls into dev.headrace.CheckpointControl. `run_path` is the run's URL as Spark writes it."""

    session: Any
    run_path: str

    def claim(self, attempt: int, body: str) -> None:
        """Takes the run for this attempt; raises Fenced if an attempt as new as this one has it."""
        try:
            self._java.claim(self.run_path, attempt, body, self._hadoop_conf)
        except Py4JJavaError as error:
            cause: Any = error.java_exception
            if cause.getClass().getName() == FENCED_CLASS:
                raise Fenced(cause.getMessage()) from None
            raise StoreUnavailable(f"{self.run_path} cannot be claimed: {cause.getMessage()}") from None

    def drain(self, timeout_seconds: float) -> bool:
        """From now on no batch begins; True when every batch that has begun can be seen in `batches`."""
        return bool(self._java.drain(int(timeout_seconds * 1000)))

    def batches(self) -> dict[str, Batches]:
        told = json.loads(self._java.batches(self.run_path, self._hadoop_conf))
        return {name: Batches(entry["offsets"], entry["commits"]) for name, entry in told.items()}

    @property
    def _java(self) -> Any:
        return self.session._jvm.dev.headrace.CheckpointControl

    @property
    def _hadoop_conf(self) -> Any:
        return self.session._jsc.hadoopConfiguration()
