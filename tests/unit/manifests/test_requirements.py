"""What the init container does that installs packages, with a stand-in for the image's Python."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headrace.core.manifests import config_map, driver_pod
from tests.unit.manifests.samples import PLATFORM, an_attempt

WANTED = ["pandas==2.2.3", "orjson>=3,<4"]
ATTEMPT = an_attempt(application={"file": "job.py", "requirements": WANTED})


def specs() -> list[dict[str, Any]]:
    template = json.loads(config_map(ATTEMPT, PLATFORM)["data"]["executor.json"])
    return [driver_pod(ATTEMPT, PLATFORM)["spec"], template["spec"]]


def install(tmp_path: Path, python: str) -> tuple[int, Path]:
    """Runs the command of the init container; the words it leaves are in the file."""
    (installer,) = [one for one in specs()[0]["initContainers"] if one["name"] == "requirements"]
    stand_in = tmp_path / "bin/python3"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\n{python}\n")
    stand_in.chmod(0o755)
    words = tmp_path / "termination-log"
    words.write_text("")
    command = [str(words) if part == "/dev/termination-log" else part for part in installer["command"]]
    environment = {"PATH": f"{stand_in.parent}:/usr/bin:/bin", "LOG": str(tmp_path / "log")}
    return subprocess.run(command, env=environment, check=False).returncode, words


@pytest.mark.parametrize("pod", specs(), ids=["driver", "executor"])
def test_the_packages_are_installed_by_the_image_of_the_job_and_found_by_python(pod: dict[str, Any]):
    (installer,) = [one for one in pod["initContainers"] if one["name"] == "requirements"]
    assert installer["image"] == PLATFORM.job_image
    assert installer["command"][-2:] == WANTED
    (main,) = pod["containers"]
    path = {each["name"]: each.get("value", "") for each in main["env"]}["PYTHONPATH"].split(":")
    (mount,) = [each for each in main["volumeMounts"] if each["name"] == "requirements"]
    assert path[-1] == mount["mountPath"]
    assert mount["readOnly"]


def test_pip_is_given_the_requirements_as_they_are(tmp_path: Path):
    code, words = install(tmp_path, 'for part in "$@"; do echo "$part"; done >"$LOG"')
    assert (code, words.read_text()) == (0, "")
    told = (tmp_path / "log").read_text().splitlines()
    assert told[:3] == ["-m", "pip", "install"]
    assert told[-5:] == ["--target", "/opt/headrace-requirements", "--", *WANTED]


def test_an_image_without_pip_is_named_with_the_field(tmp_path: Path):
    code, words = install(tmp_path, "exit 1")
    said = json.loads(words.read_text())
    assert (code, said["reason"]) == (64, "Refused")
    assert said["message"].startswith(f"spec.application.requirements: the image {PLATFORM.job_image} has no")


def test_a_package_that_cannot_be_had_fails_the_start_with_the_words_of_pip(tmp_path: Path):
    code, words = install(tmp_path, 'test "$3" = --version || exit 2')
    assert (code, words.read_text()) == (2, "")  # the kubelet takes the end of the log
