"""What all tests with a real Spark share: Headrace's jar, a Java, and a JVM that starts fast."""

import os

import pytest

from headrace_jobs.harness import archive
from headrace_jobs.harness.driver_jvm import spark_home
from headrace_jobs.jvm import java_environment
from headrace_jobs.jvm.build import build

# Tests start many JVMs that live for seconds: what pays off after minutes only costs here.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session", autouse=True)
def spark_environment():
    """For this process and all it starts. The first run on a machine makes the class archive (~30 s)."""
    build(if_stale=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in java_environment().items():
            patch.setenv(name, value)
        archive.main(["--if-stale"])
        patch.setenv("SPARK_SUBMIT_OPTS", _SHORT_LIVED)
        for name, value in archive.archive_options(os.environ, spark_home()).items():
            patch.setenv(name, value)
        yield
