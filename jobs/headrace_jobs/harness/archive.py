"""`python -m headrace_jobs.harness.archive [--if-stale]`: a class archive that halves the start of a driver.

Most of the time until Spark's first batch goes into loading and verifying some twenty thousand classes. Java
can keep them in a file, ready to map (application class-data sharing). The archive is made once per Java and
Spark, and lies in the cache. Without it everything works, only slower; Java itself checks whether it fits.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from headrace_jobs.harness.driver_jvm import JvmFailed, spark_home, start_driver_jvm
from headrace_jobs.jvm import JavaMissing, java_environment
from headrace_jobs.jvm.cache import cache_directory

_OPTIONS = "SPARK_SUBMIT_OPTS"
# Java would say in each log why an archive does not fit; it then simply loads the classes.
_QUIET = "-Xshare:auto -Xlog:cds*=off -Xlog:class+path*=off"
_GATEWAY_SECONDS = 300.0
_EXIT_SECONDS = 300.0


class ArchiveFailed(Exception):
    """This Java made no archive; the message has its last words."""


def archive_path(java_home: Path, spark: Path) -> Path:
    """Where the archive of this Java and this Spark lies, whether it exists or not."""
    release = java_home / "release"
    told = release.read_text() if release.exists() else str(java_home.resolve())
    jars = sorted(f"{jar.name} {jar.stat().st_size}" for jar in (spark / "jars").glob("*.jar"))
    digest = hashlib.sha256("\n".join([told, str(java_home), str(spark), *jars]).encode())
    return cache_directory() / "class-archive" / f"{digest.hexdigest()[:20]}.jsa"


def archive_options(environment: Mapping[str, str], spark: Path) -> dict[str, str]:
    """Environment variables with which the driver's JVM uses the archive; none when there is none."""
    java_home = environment.get("JAVA_HOME")
    archive = archive_path(Path(java_home), spark) if java_home else None
    if archive is None or not archive.exists():
        return {}
    files = ":".join(str(file) for file in (_base_of(archive), archive) if file.exists())
    return {_OPTIONS: f"{environment.get(_OPTIONS, '')} {_QUIET} -XX:SharedArchiveFile={files}".strip()}


def make_archive(target: Path, java_home: Path, *, if_stale: bool = False) -> bool:
    """Runs a small job and lets its JVM write down the classes it has loaded. False: it was there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        target.with_suffix(".lock").open("w") as lock,
        tempfile.TemporaryDirectory(dir=target.parent) as scratch,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)  # it takes half a minute: others wait instead of doing it again
        if if_stale and target.exists():
            return False
        fresh, log = Path(scratch) / "fresh.jsa", Path(scratch) / "log"
        options = [f"-XX:ArchiveClassesAtExit={fresh}", "-XX:TieredStopAtLevel=1"]
        if not (java_home / "lib" / "server" / "classes.jsa").exists():
            options.append(f"-XX:SharedArchiveFile={_make_base(target, java_home, Path(scratch))}")
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            _OPTIONS: " ".join(options),
        }
        _run([sys.executable, "-m", "headrace_jobs.harness.archive", "--train", scratch], environment, log)
        if not fresh.exists():
            raise ArchiveFailed("this Java wrote none")
        fresh.replace(target)
        return True


def _base_of(archive: Path) -> Path:
    return archive.with_suffix(".base.jsa")


def _make_base(archive: Path, java_home: Path, scratch: Path) -> Path:
    """The archive of Java's own classes, for a Java that came without: ours builds on it, by its path."""
    fresh = scratch / "base.jsa"
    dump = [str(java_home / "bin" / "java"), "-Xshare:dump", f"-XX:SharedArchiveFile={fresh}"]
    _run(dump, os.environ, scratch / "log")
    return fresh.replace(_base_of(archive))


def _run(command: list[str], environment: Mapping[str, str], log: Path) -> None:
    with log.open("wb") as output:
        done = subprocess.run(command, env=environment, stdout=output, stderr=output, check=False)
    if done.returncode != 0:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        raise ArchiveFailed(f"{command[0]} ended with {done.returncode}: {' '.join(last)[:300]}")


def _train(scratch: Path, spark: Path) -> None:
    """Touches what most jobs touch. The JVM writes the archive when it ends, so it has to end by itself."""
    jvm = start_driver_jvm(
        spark_home=spark,
        scratch=scratch,
        conf={"spark.master": "local[1]", "spark.local.dir": str(scratch), "spark.ui.enabled": "false"},
        environment=os.environ,
    )
    from headrace_jobs.harness.training import run_training_job  # noqa: PLC0415 - while the JVM starts

    run_training_job(jvm.wait_for_gateway(_GATEWAY_SECONDS), scratch)
    jvm.close(_EXIT_SECONDS)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m headrace_jobs.harness.archive", description=__doc__)
    parser.add_argument("--if-stale", action="store_true", help="do nothing when the archive is there")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    spark = spark_home()
    if arguments.train:
        _train(arguments.train, spark)
        return 0
    try:
        java_home = Path(os.environ.get("JAVA_HOME") or java_environment()["JAVA_HOME"])
        target = archive_path(java_home, spark)
        if arguments.if_stale and target.exists():
            return 0
        made = make_archive(target, java_home, if_stale=arguments.if_stale)
    except (ArchiveFailed, JavaMissing, JvmFailed) as problem:
        # Not an error: it is about speed only, and some Java runtimes cannot do it.
        sys.stderr.write(f"no class archive, drivers start more slowly: {problem}\n")
        return 0
    if made:
        sys.stderr.write(f"made {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
