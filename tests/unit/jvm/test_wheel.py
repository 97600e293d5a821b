"""What is shipped: both packages with the jar, and nothing that only a checkout needs."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from headrace_jobs.jvm import jar_path
from headrace_jobs.jvm.build import build

ROOT = Path(__file__).parents[3]
PACKAGES = {"headrace": ROOT / "operator/headrace", "headrace_jobs": ROOT / "jobs/headrace_jobs"}
# All that is shipped beside Python.
DATA = (
    "headrace_jobs/jars/headrace-jvm.jar",
    "headrace_jobs/jvm/locks/*.lock",
    "headrace/cli/templates/*.tmpl",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    build(if_stale=True)
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (file,) = target.iterdir()
    return zipfile.ZipFile(file)


def contents(wheel: zipfile.ZipFile) -> list[PurePosixPath]:
    return [path for name in wheel.namelist() if not (path := PurePosixPath(name)).parts[0].endswith("-info")]


def test_every_module_of_both_packages_is_in_it_and_no_other_python(wheel: zipfile.ZipFile) -> None:
    """An entry of .gitignore that fits a package's name would leave it out without a word."""
    here = {
        f"{name}/{module.relative_to(place).as_posix()}"
        for name, place in PACKAGES.items()
        for module in place.rglob("*.py")
    }
    assert {str(path) for path in contents(wheel) if path.suffix == ".py"} == here


def test_beside_python_there_is_what_is_needed_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    others = [path for path in contents(wheel) if path.suffix != ".py"]
    assert [str(path) for path in others if not any(path.match(known) for known in DATA)] == []
    assert [known for known in DATA if not any(path.match(known) for path in others)] == []


def test_no_test_is_shipped(wheel: zipfile.ZipFile) -> None:
    assert [
        str(path)
        for path in contents(wheel)
        if "tests" in path.parts or path.name == "conftest.py" or path.match("test_*.py")
    ] == []


def test_the_jar_in_it_is_the_one_that_was_built_with_a_class_for_each_source(wheel: zipfile.ZipFile) -> None:
    shipped = wheel.read("headrace_jobs/jars/headrace-jvm.jar")
    assert shipped == jar_path().read_bytes()
    sources = ROOT / "jobs/jvm/src"
    wanted = {
        source.relative_to(sources).with_suffix(".class").as_posix() for source in sources.rglob("*.java")
    }
    found = {name for name in zipfile.ZipFile(io.BytesIO(shipped)).namelist() if name.endswith(".class")}
    assert {name for name in found if "$" not in name} == wanted
