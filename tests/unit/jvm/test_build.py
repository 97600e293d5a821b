"""When Headrace's jar is made again, and which Spark it is for. That it works is shown in tests/spark."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import pytest

from headrace_jobs.jvm import build
from headrace_jobs.jvm.build import BuildFailed, JarNotBuilt, UnsupportedSpark, check_spark_version, jar_path


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Sources of one class and a compiler that only counts; returns what it was asked to compile."""
    sources = tmp_path / "src"
    sources.mkdir()
    (sources / "A.java").write_text("class A {}")
    compiled: list[str] = []

    def compile_classes(classes: Path) -> None:
        compiled.append((sources / "A.java").read_text())
        (classes / "dev").mkdir()
        (classes / "dev" / "A.class").write_text("bytes")
        (classes / "Stub.class").write_text("not ours")

    monkeypatch.setattr(build, "_SOURCES", sources)
    monkeypatch.setattr(build, "_JAR", tmp_path / "jars" / "headrace-jvm.jar")
    monkeypatch.setattr(build, "_compile", compile_classes)
    return compiled


def test_a_missing_jar_says_how_to_make_it(checkout: list[str]) -> None:
    with pytest.raises(JarNotBuilt, match=r"python -m headrace_jobs\.jvm"):
        jar_path()
    build.build(if_stale=True)
    assert jar_path().is_file()


def test_the_jar_is_made_again_only_when_its_sources_change(checkout: list[str], tmp_path: Path) -> None:
    assert build.build(if_stale=True)
    assert not build.build(if_stale=True)
    (tmp_path / "src" / "A.java").write_text("class A { int changed; }")
    assert build.build(if_stale=True)
    assert build.build(if_stale=False)
    assert len(checkout) == 3


def test_another_spark_makes_it_stale(checkout: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    build.build(if_stale=True)
    monkeypatch.setattr(build.metadata, "version", lambda _: "4.3.0")
    assert build.build(if_stale=True)


def test_the_same_sources_give_the_same_bytes_and_only_our_classes(checkout: list[str]) -> None:
    build.build(if_stale=False)
    first = jar_path().read_bytes()
    build.build(if_stale=False)
    assert jar_path().read_bytes() == first
    names = zipfile.ZipFile(jar_path()).namelist()
    assert names == ["META-INF/MANIFEST.MF", "META-INF/headrace.digest", "dev/A.class"]


def test_two_builds_at_once_make_one_jar(checkout: list[str]) -> None:
    start = threading.Barrier(4)

    def run() -> None:
        start.wait(timeout=10)
        build.build(if_stale=True)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(checkout) == 1
    assert sorted(path.name for path in jar_path().parent.iterdir()) == [
        "headrace-jvm.jar",
        "headrace-jvm.lock",
    ]


def test_a_broken_jar_is_stale(checkout: list[str]) -> None:
    build.build(if_stale=True)
    jar_path().write_bytes(b"half a jar")
    assert build.build(if_stale=True)


def test_without_sources_nothing_can_be_made(checkout: list[str], tmp_path: Path) -> None:
    (tmp_path / "src" / "A.java").unlink()
    with pytest.raises(BuildFailed, match="built from a checkout"):
        build.build(if_stale=True)


@pytest.mark.parametrize("version", ["4.1.0", "4.2.1", "4.3.0.dev1"])
def test_these_sparks_will_do(version: str) -> None:
    check_spark_version(version)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.2", "4.4.0"])
def test_these_will_not_and_it_is_said(version: str) -> None:
    with pytest.raises(UnsupportedSpark, match=rf"this is Spark {version}; .* need Spark 4\.1 to 4\.3"):
        check_spark_version(version)
