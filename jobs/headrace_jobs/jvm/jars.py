"""Connectors' jars: pinned by version and hash, fetched once, kept in the user's cache.

Fetched by Apache Ivy, which is among Spark's own jars, so that nothing but Java is needed. Ivy knows where
the public Maven repository is; behind a mirror, set DEFAULT_ARTIFACT_REPOSITORY to its URL, as for Spark.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from headrace_jobs.jvm.build import spark_jars
from headrace_jobs.jvm.cache import cache_directory
from headrace_jobs.jvm.java import find_java
from headrace_jobs.jvm.trust import system_trust_options

_LOCKS = Path(__file__).parent / "locks"
_FETCH_SECONDS = 600


class JarsError(Exception):
    """The jars cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class LockedJar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def connector_jars(name: str) -> tuple[Path, ...]:
    """The jars of one connector (`s3a`, `kafka`) for the Spark at hand."""
    return locked_jars(_lock_file(name))


def connector_locks(name: str) -> tuple[Path, ...]:
    """The locks of one connector, one for each line of Hadoop or Spark."""
    return tuple(sorted(_LOCKS.glob(f"{name}-*.lock")))


def locked_jars(lock: Path) -> tuple[Path, ...]:
    """What a lock pins, fetched when it is not in the cache yet."""
    wanted = _read_lock(lock)
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = cache_directory() / "jars" / f"{lock.stem}-{digest}"
    if not home.is_dir():
        _fetch(wanted, home)
    return tuple(home / jar.file_name for jar in wanted)


def _lock_file(name: str) -> Path:
    """A lock fits one Hadoop (s3a-hadoop-3.5.0) or one Spark line (kafka-spark-4.2)."""
    jars = spark_jars()
    for lock in connector_locks(name):
        part, version = lock.stem.removeprefix(f"{name}-").split("-", 1)
        anchor = {"hadoop": "hadoop-client-api-{}.jar", "spark": "spark-sql_2.13-{}.*.jar"}[part]
        if any(jars.glob(anchor.format(version))):
            return lock
    known = sorted({lock.stem.split("-", 1)[0] for lock in _LOCKS.glob("*.lock")})
    if name not in known:
        raise JarsError(f"there is no connector '{name}'; there are: {', '.join(known)}")
    raise JarsError(
        f"no jars for '{name}' are pinned that fit the Spark in {jars}: add them to spark.jars yourself"
    )


def _read_lock(lock: Path) -> tuple[LockedJar, ...]:
    pinned: list[LockedJar] = []
    for line in lock.read_text().splitlines():
        if line and not line.startswith("#"):
            coordinates, sha256 = line.split()
            group, artifact, version = coordinates.split(":")
            pinned.append(LockedJar(group, artifact, version, sha256))
    return tuple(pinned)


def _fetch(wanted: tuple[LockedJar, ...], home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        fresh = Path(scratch) / "jars"
        fresh.mkdir()
        missing = tuple(jar for jar in wanted if not _take_from_maven(jar, fresh))
        if missing:
            _run_ivy(missing, fresh, Path(scratch))
        for jar in wanted:
            _verify(jar, fresh / jar.file_name)
        try:
            fresh.rename(home)
        except OSError:
            if not home.is_dir():  # otherwise another process was faster, with the same verified files
                raise


def _take_from_maven(jar: LockedJar, target: Path) -> bool:
    """What Maven has on this machine need not be fetched again, if it is what was pinned."""
    local = (
        Path.home()
        / ".m2/repository"
        / jar.group.replace(".", "/")
        / jar.artifact
        / jar.version
        / jar.file_name
    )
    if not local.is_file() or _sha256(local) != jar.sha256:
        return False
    shutil.copyfile(local, target / jar.file_name)
    return True


def _run_ivy(wanted: tuple[LockedJar, ...], target: Path, scratch: Path) -> None:
    module = scratch / "ivy.xml"
    module.write_text(_ivy_module(wanted))
    (ivy,) = spark_jars().glob("ivy-*.jar")
    command = [
        find_java().executable,
        *system_trust_options(),
        "-cp",
        ivy,
        "org.apache.ivy.Main",
        "-ivy",
        module,
    ]
    # Some poms call their jar an OSGi bundle.
    command += ["-cache", scratch / "ivy-cache", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{target}/[artifact]-[revision].[ext]"]
    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    if mirror:
        settings = scratch / "ivysettings.xml"
        settings.write_text(_ivy_settings(mirror))
        command += ["-settings", settings]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise JarsError(f"fetching {len(wanted)} jars took more than {_FETCH_SECONDS} s") from None
    if done.returncode != 0:
        raise JarsError(
            f"{len(wanted)} jars could not be fetched ({_what_ivy_said(done.stdout + done.stderr)}). "
            "Behind a mirror, set DEFAULT_ARTIFACT_REPOSITORY to its URL"
        )


def _ivy_module(wanted: tuple[LockedJar, ...]) -> str:
    # Not transitive: the lock is the whole list, and Spark brings the rest.
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} "
        'transitive="false"/>'
        for jar in wanted
    )
    return (
        '<ivy-module version="2.0"><info organisation="dev.headrace" module="jars"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _ivy_settings(mirror: str) -> str:
    return (
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" root={quoteattr(mirror)}/>'
        "</resolvers></ivysettings>"
    )


def _what_ivy_said(output: str) -> str:
    # The cause stands above the list of what was not found.
    for pattern in (r"Exception", r"not found", r"ERROR"):
        telling = [line.strip() for line in output.splitlines() if re.search(pattern, line)]
        if telling:
            return telling[0]
    return "Ivy gave no reason"


def _verify(jar: LockedJar, path: Path) -> None:
    if not path.is_file():
        raise JarsError(f"{jar} was not found in the repository")
    found = _sha256(path)
    if found != jar.sha256:
        raise JarsError(f"{jar} has the hash {found}, pinned is {jar.sha256}: do not use it")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
