"""What can be said of kind without Docker: what is refused, and what it is told."""

import json
from pathlib import Path

import pytest

from tests.cluster import kind, provider
from tests.cluster.console import MissingError


def a_program(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory in which programs are looked for; a cache and a checkout of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return programs


def test_without_docker_it_is_said(path: Path):
    with pytest.raises(MissingError, match="needs Docker; `native` does not"):
        kind.up()


def test_docker_that_does_not_run_is_told_from_docker_that_is_missing(path: Path):
    a_program(path, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    with pytest.raises(MissingError, match=r"does not answer(.|\n)*Cannot connect to the Docker daemon"):
        kind.up()


def test_a_kind_too_old_for_the_node_image_is_refused(path: Path):
    a_program(path, "docker", "exit 0")
    a_program(path, "kind", "echo 'kind v0.17.0 go1.19.2 linux/amd64'")
    with pytest.raises(MissingError, match=f"v0.17.0.*{kind.VERSION} or newer"):
        kind.up()


@pytest.mark.parametrize(
    ("said", "enough"), [("kind v0.31.0 go1", True), ("kind v1.0.0 go1", True), ("kind v0.9.9", False)]
)
def test_versions_are_compared_as_numbers(said: str, enough: bool):
    assert kind.new_enough(said) == enough


def test_the_cluster_of_another_checkout_is_reused_with_its_kubeconfig(path: Path):
    a_program(path, "docker", "exit 0")
    answers = 'case "$1" in version) echo kind v0.31.0;; get) echo headrace;; esac'
    a_program(path, "kind", f'echo "$@" >> {path}/asked; {answers}')
    found = kind.up()
    assert not found.started_here
    asked = (path / "asked").read_text()
    assert f"export kubeconfig --name=headrace --kubeconfig={found.kubeconfig}" in asked
    assert "create" not in asked
    found.down()
    assert "delete cluster --name=headrace" in (path / "asked").read_text()


def test_there_are_two_nodes_and_both_take_pods():
    nodes = json.loads(json.dumps(kind.config_of(2)))["nodes"]
    assert [node["role"] for node in nodes] == ["control-plane", "worker"]
    assert json.loads(nodes[0]["kubeadmConfigPatches"][0])["nodeRegistration"] == {"taints": []}
    assert len(json.loads(json.dumps(kind.config_of(1)))["nodes"]) == 1


@pytest.mark.parametrize("minor", ["29", "35+", "40"])
def test_a_server_that_takes_the_crds_is_used(minor: str):
    provider.refuse_too_old({"major": "1", "minor": minor})


@pytest.mark.parametrize("minor", ["25", "28+", ""])
def test_a_server_that_does_not_take_the_crds_is_refused(minor: str):
    with pytest.raises(MissingError, match=r"needs 1\.29 or newer"):
        provider.refuse_too_old({"major": "1", "minor": minor})
