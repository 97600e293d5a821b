"""Compiles Headrace's few Java classes with Janino, which is among Spark's own jars: no JDK needed.

The jar is stale when the sources or the Spark they were compiled against change; a digest of both lies
beside the class files in the jar, so that the jar alone says what it was made from.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from headrace_jobs.jvm.gateway import file_array, small_jvm

OLDEST_SPARK = (4, 1)
NEWEST_SPARK = (4, 3)

_PACKAGE = Path(__file__).resolve().parent.parent
_JAR = _PACKAGE / "jars" / "headrace-jvm.jar"
_SOURCES = _PACKAGE.parent / "jvm" / "src"
# Types of the AWS SDK that one class implements; the SDK itself need not be there to compile.
_STUBS = _PACKAGE.parent / "jvm" / "stubs"
_DIGEST_ENTRY = "META-INF/headrace.digest"
_ANCHOR_CLASS = "org/apache/spark/sql/execution/streaming/checkpointing/CheckpointFileManager.class"
_MADE_AT = (1980, 1, 1, 0, 0, 0)  # one fixed time: the same sources give the same bytes


class JarNotBuilt(Exception):
    """The jar is missing; the message says how to get it."""


class BuildFailed(Exception):
    """The jar could not be made; the message says why."""


class UnsupportedSpark(BuildFailed):
    """The jar would not load in this Spark."""


def jar_path() -> Path:
    """Headrace's jar. In a checkout it is built by the set-up; in a wheel it is part of the package."""
    if not _JAR.exists():
        raise JarNotBuilt(f"{_JAR} is missing. Make it: python -m headrace_jobs.jvm")
    return _JAR


def spark_jars() -> Path:
    """The directory with Spark's jars: of SPARK_HOME, or of the installed pyspark."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BuildFailed("pyspark is not installed. Install it: pip install 'headrace[jobs]'")
    return Path(spec.origin).parent / "jars"


def check_spark_version(version: str) -> None:
    """Raises UnsupportedSpark for a Spark whose classes have other names than those ours were written for."""
    release = tuple(int(part) for part in version.split(".")[:2])
    if not OLDEST_SPARK <= release <= NEWEST_SPARK:
        low, high = (".".join(map(str, bound)) for bound in (OLDEST_SPARK, NEWEST_SPARK))
        raise UnsupportedSpark(f"this is Spark {version}; Headrace's checkpoints need Spark {low} to {high}")


def build(*, if_stale: bool) -> bool:
    """Makes the jar; False when it is up to date and `if_stale` was asked for."""
    digest = _wanted_digest()
    if if_stale and _digest_of(_JAR) == digest:
        return False
    _JAR.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(_JAR.with_suffix(".lock")):
        # Another process may have made it while this one waited.
        if if_stale and _digest_of(_JAR) == digest:
            return False
        with tempfile.TemporaryDirectory(dir=_JAR.parent) as scratch:
            classes = Path(scratch) / "classes"
            classes.mkdir()
            _compile(classes)
            fresh = Path(scratch) / _JAR.name
            _pack(classes, digest, fresh)
            fresh.replace(_JAR)
    return True


def _wanted_digest() -> str:
    sources = _source_files()
    if not sources:
        raise BuildFailed(f"no Java sources in {_SOURCES}: the jar is built from a checkout of the project")
    digest = hashlib.sha256()
    digest.update(metadata.version("pyspark").encode())
    # The compiler's driver is part of what makes the jar, too.
    for source in (*sources, *sorted(_STUBS.rglob("*.java")), Path(__file__)):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _source_files() -> list[Path]:
    return sorted(_SOURCES.rglob("*.java"))


def _digest_of(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_DIGEST_ENTRY).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _compile(classes: Path) -> None:
    check_spark_version(metadata.version("pyspark"))
    jars = spark_jars()
    _check_anchor(jars)
    with small_jvm(jars) as gateway:
        jvm: Any = gateway.jvm
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setDestinationDirectory(jvm.java.io.File(str(classes)), False)
        compiler.setClassPath(file_array(gateway, sorted(jars.glob("*.jar"))))
        compiler.setSourcePath(file_array(gateway, [_STUBS]))
        compiler.setDebugLines(True)
        compiler.setDebugSource(True)
        try:
            compiler.compile(file_array(gateway, _source_files()))
        except Py4JJavaError as error:
            raise BuildFailed(
                f"the Java sources do not compile: {error.java_exception.getMessage()}"
            ) from None


def _check_anchor(jars: Path) -> None:
    found = [jar for jar in jars.glob("spark-sql_*.jar") if _ANCHOR_CLASS in zipfile.ZipFile(jar).namelist()]
    if not found:
        raise UnsupportedSpark(f"the Spark in {jars} has no {_ANCHOR_CLASS.removesuffix('.class')}")


def _pack(classes: Path, digest: str, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        entries = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", _DIGEST_ENTRY: digest.encode()}
        # Janino compiles the stubs along; they are not ours to ship.
        for path in sorted((classes / "dev").rglob("*.class")):
            entries[path.relative_to(classes).as_posix()] = path.read_bytes()
        for name, content in entries.items():
            jar.writestr(zipfile.ZipInfo(name, _MADE_AT), content, zipfile.ZIP_DEFLATED)
