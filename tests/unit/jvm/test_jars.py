"""Connectors' jars: what is fetched is what was pinned, or nothing."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.jvm import jars
from headrace_jobs.jvm.jars import JarsError, connector_jars
from headrace_jobs.jvm.java import JavaRuntime

CONTENT = b"the jar"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Spark, a lock file for it, an empty cache and no Java that could be started."""
    spark = tmp_path / "spark"
    spark.mkdir()
    for name in ("hadoop-client-api-3.5.0.jar", "spark-sql_2.13-4.2.1.jar", "ivy-2.5.3.jar"):
        (spark / name).touch()
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "demo-hadoop-3.5.0.lock").write_text(f"# a comment\norg.demo:demo-lib:1.2 {SHA256}\n")
    (locks / "old-spark-4.1.lock").write_text(f"org.demo:demo-lib:1.2 {SHA256}\n")
    monkeypatch.setattr(jars, "spark_jars", lambda: spark)
    monkeypatch.setattr(jars, "_LOCKS", locks)
    monkeypatch.setattr(jars, "system_trust_options", list)
    monkeypatch.setattr(jars, "find_java", lambda: JavaRuntime(tmp_path / "java", 21, "PATH"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DEFAULT_ARTIFACT_REPOSITORY", raising=False)
    return tmp_path


class Ivy:
    """Stands in for the process: keeps what it was told, puts a file where it was asked to."""

    def __init__(self, content: bytes | None, output: str = "", code: int = 0) -> None:
        self.content, self.output, self.code = content, output, code
        self.commands: list[list[str]] = []
        self.files: dict[str, str] = {}

    def __call__(self, command: list[Any], **_: Any) -> subprocess.CompletedProcess[str]:
        arguments = [str(part) for part in command]
        self.commands.append(arguments)
        for option in ("-ivy", "-settings"):
            if option in arguments:
                self.files[option] = Path(arguments[arguments.index(option) + 1]).read_text()
        if self.content is not None:
            pattern = arguments[arguments.index("-retrieve") + 1]
            Path(pattern.replace("[artifact]-[revision].[ext]", "demo-lib-1.2.jar")).write_bytes(self.content)
        return subprocess.CompletedProcess(command, self.code, stdout=self.output, stderr="")


def use(monkeypatch: pytest.MonkeyPatch, ivy: Ivy) -> Ivy:
    monkeypatch.setattr(jars.subprocess, "run", ivy)
    return ivy


def test_jars_are_fetched_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ivy = use(monkeypatch, Ivy(CONTENT))
    first, second = connector_jars("demo"), connector_jars("demo")
    assert [jar.read_bytes() for jar in first] == [CONTENT]
    assert first == second
    assert len(ivy.commands) == 1
    assert 'org="org.demo" name="demo-lib" rev="1.2" transitive="false"' in ivy.files["-ivy"]
    assert "-settings" not in ivy.files


def test_a_mirror_is_used_as_spark_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "https://mirror.example/maven?a&b")
    ivy = use(monkeypatch, Ivy(CONTENT))
    connector_jars("demo")
    assert 'root="https://mirror.example/maven?a&amp;b"' in ivy.files["-settings"]


def test_a_jar_with_another_hash_is_not_used_and_not_kept(
    monkeypatch: pytest.MonkeyPatch, machine: Path
) -> None:
    use(monkeypatch, Ivy(b"something else"))
    with pytest.raises(JarsError, match=rf"org.demo:demo-lib:1.2 has the hash .*, pinned is {SHA256}"):
        connector_jars("demo")
    assert not list((machine / "cache").rglob("*.jar"))


def test_what_maven_has_is_taken_if_it_is_what_was_pinned(
    monkeypatch: pytest.MonkeyPatch, machine: Path
) -> None:
    ivy = use(monkeypatch, Ivy(CONTENT))
    local = machine / ".m2/repository/org/demo/demo-lib/1.2/demo-lib-1.2.jar"
    local.parent.mkdir(parents=True)
    local.write_bytes(CONTENT)
    assert [jar.read_bytes() for jar in connector_jars("demo")] == [CONTENT]
    assert ivy.commands == []


def test_a_local_jar_with_another_hash_is_ignored(monkeypatch: pytest.MonkeyPatch, machine: Path) -> None:
    ivy = use(monkeypatch, Ivy(CONTENT))
    local = machine / ".m2/repository/org/demo/demo-lib/1.2/demo-lib-1.2.jar"
    local.parent.mkdir(parents=True)
    local.write_bytes(b"something else")
    assert [jar.read_bytes() for jar in connector_jars("demo")] == [CONTENT]
    assert len(ivy.commands) == 1


def test_a_failed_fetch_tells_the_cause_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "module not found: org.demo#demo-lib;1.2\n   SSLHandshakeException: PKIX path building failed\n"
    use(monkeypatch, Ivy(None, output=said, code=1))
    with pytest.raises(JarsError, match=r"SSLHandshakeException.*DEFAULT_ARTIFACT_REPOSITORY"):
        connector_jars("demo")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "there is no connector 'nothing'; there are: demo, old"),
        ("old", "no jars for 'old' are pinned that fit"),
    ],
)
def test_what_cannot_be_had_is_said(name: str, says: str) -> None:
    with pytest.raises(JarsError, match=says):
        connector_jars(name)


def test_the_real_locks_are_whole() -> None:
    locks = sorted((Path(jars.__file__).parent / "locks").glob("*.lock"))
    assert [lock.stem for lock in locks] == ["kafka-spark-4.2", "s3a-hadoop-3.4.2", "s3a-hadoop-3.5.0"]
    for lock in locks:
        pinned = jars._read_lock(lock)
        assert len({jar.file_name for jar in pinned}) == len(pinned) > 0
        assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in pinned)
