"""The images' recipes, without building one."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from images import build

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+?)(?: ;|\s|$)", re.MULTILINE)


@pytest.mark.parametrize("name", ["spark", "operator", "carried"])
def test_an_image_has_the_versions_that_are_tested(name: str):
    tested = set(PIN.findall((ROOT / "requirements/runtime.txt").read_text()))
    pinned = set(PIN.findall((ROOT / f"images/{name}.txt").read_text()))
    # pip is there for the requirements of users' jobs; nothing of ours uses it.
    used = {pin for pin in pinned if pin[0] != "pip"}
    assert used
    assert used <= tested, "run images/lock.sh"


def test_every_pin_is_verified():
    for lock in (ROOT / "images").glob("*.txt"):
        text = lock.read_text()
        assert text.count("--hash=sha256:") >= len(PIN.findall(text))


def test_a_tag_tells_every_input_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "ROOT", tmp_path)
    for name in ("Dockerfile", "images/spark.txt", "images/decom.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    before = build.SPARK.reference
    assert build.SPARK.reference == before
    (tmp_path / "images/decom.sh").write_text("exit 1")
    assert build.SPARK.reference != before


def test_what_the_dockerfile_copies_passes_the_dockerignore():
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    let_through = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    for source in " ".join(copied).split():
        assert any(source.startswith(path) for path in let_through), source


def test_an_executor_gets_its_options_in_their_order(tmp_path: Path):
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    told = {
        "DRIVER_URL": "spark://driver:7078",
        "EXECUTOR_ID": "7",
        "EXECUTOR_CORES": "2",
        "EXECUTOR_MEMORY": "512m",
        "EXECUTOR_POD_IP": "198.18.65.9",
        "EXECUTOR_POD_NAME": "spark-s-x-0",
        "APPLICATION_ID": "x",
        "RESOURCE_PROFILE_ID": "0",
    }
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SPARK_HOME": "/opt/spark",
        **{f"SPARK_{name}": value for name, value in told.items()},
        **{f"SPARK_JAVA_OPT_{number}": f"-Dorder={number}" for number in (10, 2, 0)},
    }
    started = subprocess.run(
        ["bash", str(ROOT / "images/entrypoint.sh"), "executor"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert started[:4] == ["-Dorder=0", "-Dorder=2", "-Dorder=10", "-Xms512m"]
    assert started[started.index("--driver-url") + 1] == "spark://driver:7078"
    assert started[started.index("-cp") + 1] == "/opt/spark/conf:/opt/spark/jars/*"


def test_anything_else_is_run_as_it_stands():
    command = ["bash", str(ROOT / "images/entrypoint.sh"), "echo", "two words"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "two words\n"


def test_what_only_lies_in_the_checkout_stays_out_of_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(build, "STAGE", tmp_path / "stage")
    package = tmp_path / "jobs"
    for file in ("run.py", "__pycache__/run.pyc", "jars/ours.jar", "jars/ours.lock", "jars/tmpx/half.jar"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).touch(mode=0o600)
    build._stage_code(package)
    staged = tmp_path / "stage/code/jobs"
    assert {str(path.relative_to(staged)) for path in staged.rglob("*")} == {
        "run.py",
        "jars",
        "jars/ours.jar",
    }
    assert (staged / "run.py").stat().st_mode & 0o777 == 0o644


def test_uv_is_found_where_the_setup_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    uv = tmp_path / "headrace/uv-1.2.3/bin/uv"
    uv.parent.mkdir(parents=True)
    uv.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert build.find_uv() == str(uv)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    with pytest.raises(build.BuildError, match="make setup"):
        build.find_uv()
