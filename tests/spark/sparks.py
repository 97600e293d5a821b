"""Other lines of Spark than the one that is locked: pinned, fetched once, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from images import build

from headrace_jobs.jvm.cache import cache_directory
from tests.e2e.testimages import FOREIGN_LOCK

# The first line that Headrace says it works with, and the last. The one in between is in requirements/.
OLDEST = Path(__file__).parent / "locks/spark-4.1.4.txt"
NEWEST = FOREIGN_LOCK


def spark_of(lock: Path) -> Path:
    """A directory with the packages of a lock: a plain Spark that has never heard of Headrace."""
    home = cache_directory() / f"spark-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not home.exists():
        fresh = Path(tempfile.mkdtemp(dir=cache_directory()))
        how = ["--quiet", "--system-certs", "--require-hashes", "--python-version", build.PYTHON]
        command = [build.find_uv(), "pip", "install", *how, "--target", str(fresh), "-r", str(lock)]
        subprocess.run(command, check=True)
        fresh.rename(home)
    return home


def use_spark(packages: Path, patch: pytest.MonkeyPatch) -> None:
    """What this process starts from now on runs with that Spark, in Python and in the JVM."""
    # A class archive is of one Spark.
    patch.delenv("JDK_JAVA_OPTIONS", raising=False)
    patch.setenv("SPARK_HOME", str(packages / "pyspark"))
    patch.setenv("PYTHONPATH", str(packages), prepend=os.pathsep)
