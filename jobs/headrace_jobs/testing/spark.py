"""The Spark that tests run on: one JVM per pytest process, with the same state settings as a real driver."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from headrace_jobs.harness.archive import archive_options
from headrace_jobs.harness.conf import PINNED_SESSION_CONF
from headrace_jobs.harness.driver_jvm import DriverJvm, spark_home, start_driver_jvm
from headrace_jobs.harness.session import open_session
from headrace_jobs.jvm import java_environment

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_GATEWAY_SECONDS = 120.0
# Small rows, many short queries: one partition is fastest, and rows keep their order.
_CONF = {
    "spark.master": "local[1]",
    "spark.app.name": "headrace-test",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    # A test's checkpoint is thrown away; Spark's own way to it is good enough and needs no jar.
    **{key: value for key, (value, _) in PINNED_SESSION_CONF.items() if key != _FILE_MANAGER},
}


@dataclass(frozen=True)
class TestSpark:
    session: SparkSession
    jvm: DriverJvm | None
    scratch: Path | None

    __test__ = False  # not a test class, whatever pytest thinks of its name

    @classmethod
    def start(cls) -> TestSpark:
        running = SparkSession._instantiatedSession
        if running is not None:  # the project's own tests have started one already
            return cls(running, None, None)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        scratch = Path(tempfile.mkdtemp(prefix="headrace-test-"))
        environment = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(scratch), **os.environ}
        if "JAVA_HOME" not in environment:
            environment |= java_environment()
        environment |= archive_options(environment, spark_home())
        jvm = start_driver_jvm(spark_home=spark_home(), scratch=scratch, conf=_CONF, environment=environment)
        session = open_session(jvm.wait_for_gateway(_GATEWAY_SECONDS))
        session.sparkContext.setLogLevel("ERROR")
        return cls(session, jvm, scratch)

    def new_session(self) -> SparkSession:
        """Its own settings, views and functions; the same JVM."""
        session = self.session.newSession()
        if self.jvm is None:
            for key, value in _CONF.items():
                if key.startswith("spark.sql."):
                    session.conf.set(key, value)
        return session

    def close(self) -> None:
        if self.jvm is not None:
            self.jvm.halt()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)
