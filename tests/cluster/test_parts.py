"""The parts of the cluster that can be tried without root and in milliseconds."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.cluster import binaries, debian, images, layout, pki, prometheus, provider
from tests.cluster.console import MissingError
from tests.cluster.processes import NotReadyError, Process, start, wait_ready, wait_until


@pytest.fixture
def sleeper(tmp_path: Path):
    process = start("sleeper", ["sleep", "300"], log=tmp_path / "sleeper.log")
    yield process
    process.end(patience_seconds=1)


@pytest.mark.parametrize("module_set", binaries.MODULE_SETS, ids=lambda one: one.folder)
def test_every_module_set_is_pinned_and_verified(module_set: binaries.ModuleSet):
    assert module_set.version.startswith("v")
    if module_set.module is not None:
        assert f"{module_set.module} {module_set.version} h1:" in (module_set.source / "go.sum").read_text()


def test_a_changed_pin_never_meets_an_old_binary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(binaries, "go_version", lambda: "go9.98")
    before = binaries.ETCD.directory()
    monkeypatch.setattr(binaries, "go_version", lambda: "go9.99")
    assert binaries.ETCD.directory() != before


def test_kubernetes_tells_its_version():
    flags = binaries.KUBERNETES.linker_flags()
    assert f"version.gitVersion={binaries.KUBERNETES.version}" in flags
    assert "version.gitMajor=1 " in flags


def test_every_program_has_exactly_one_source():
    every = [name for module_set in binaries.MODULE_SETS for name in module_set.packages]
    assert sorted(every) == sorted(set(every))
    assert set(binaries.CLUSTER_PROGRAMS) <= set(every)


def test_a_missing_package_is_named_with_the_command_that_brings_it():
    with pytest.raises(MissingError) as refused:
        debian.need({"no-such-program": "that-package", "/no/such/file": "other-package", "sh": "dash"})
    assert "other-package that-package" in str(refused.value)
    assert "apt-get install" in str(refused.value)
    assert "dash" not in str(refused.value)


def test_too_little_disk_space_is_said_before_compiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(binaries, "go_version", lambda: "go9.99")
    monkeypatch.setattr(binaries, "FREE_GIGABYTES_TO_COMPILE", 10**9)
    with pytest.raises(MissingError, match="XDG_CACHE_HOME"):
        binaries.ensure(("etcd",))


def test_a_process_is_not_mistaken_for_a_later_one_with_its_pid(sleeper: Process):
    assert sleeper.alive()
    assert not Process(sleeper.name, sleeper.pid, sleeper.started_at_ticks - 1).alive()


def test_a_stranger_with_the_same_pid_is_not_ended(sleeper: Process):
    Process(sleeper.name, sleeper.pid, sleeper.started_at_ticks - 1).end()
    assert sleeper.alive()


def test_ending_insists_where_asking_does_not_help(tmp_path: Path):
    log = tmp_path / "deaf.log"
    deaf = start("deaf", ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"], log=log)
    assert wait_until(lambda: "deaf" in log.read_text(), seconds=10)
    deaf.end(patience_seconds=0.2)
    assert not deaf.alive()


def test_a_program_that_ends_early_shows_the_end_of_its_log(tmp_path: Path):
    log = tmp_path / "broken.log"
    broken = start("broken", ["sh", "-c", "echo no such flag; exit 3"], log=log)
    with pytest.raises(NotReadyError, match="no such flag"):
        wait_ready(broken, lambda: False, log=log, seconds=10)


def test_node_addresses_stay_inside_their_ranges():
    nodes = layout.nodes(layout.MOST_NODES)
    assert len({node.address for node in nodes} | {node.pods for node in nodes}) == 2 * len(nodes)
    assert all(node.address.startswith("198.18.0.") for node in nodes)
    assert layout.MACHINE_ADDRESS not in {node.address for node in nodes}


def test_certificates_say_who_they_are_for_and_are_kept(tmp_path: Path):
    node = layout.Node(2).identity
    keys = pki.ensure(tmp_path / "pki", [node])
    first = keys.certificate(node).read_bytes()
    pki.ensure(tmp_path / "pki", [node, pki.ADMIN])
    assert keys.certificate(node).read_bytes() == first
    shown = [
        "openssl",
        "x509",
        "-in",
        str(keys.certificate(node)),
        "-noout",
        "-subject",
        "-ext",
        "subjectAltName",
    ]
    text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    assert "system:node:node2" in text
    assert "198.18.0.3" in text


def test_a_kubeconfig_is_readable_by_its_owner_only(tmp_path: Path):
    keys = pki.ensure(tmp_path / "pki", [pki.ADMIN])
    path = pki.write_kubeconfig(tmp_path / "config", server="https://x", keys=keys, identity=pki.ADMIN)
    assert path.stat().st_mode & 0o077 == 0
    assert json.loads(path.read_text())["clusters"][0]["cluster"]["server"] == "https://x"


def test_the_pause_image_holds_one_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    monkeypatch.setattr(binaries, "program", lambda name: tmp_path / name)
    with tarfile.open(images.pause_archive(tmp_path / "pause.tar")) as archive:
        manifest = json.load(archive.extractfile("manifest.json") or io.BytesIO())
        layer = archive.extractfile(manifest[0]["Layers"][0])
        assert layer is not None
        with tarfile.open(fileobj=layer) as files:
            assert [(entry.name, entry.mode) for entry in files] == [("pause", 0o755)]
    assert manifest[0]["RepoTags"] == [layout.PAUSE_IMAGE]


def test_a_program_started_for_a_caller_dies_with_it(tmp_path: Path):
    """What running_api_server relies on when pytest itself is killed."""
    script = (
        "import sys, pathlib; from tests.cluster.processes import start\n"
        f"log = pathlib.Path({str(tmp_path / 'child.log')!r})\n"
        "child = start('child', ['setpriv', '--pdeathsig', 'KILL', 'sleep', '300'], log=log)\n"
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert caller.stdout is not None
    child = Process.of_pid("child", int(caller.stdout.readline()))
    assert wait_until(lambda: Path(f"/proc/{child.pid}/comm").read_text().strip() == "sleep", seconds=10)
    os.kill(caller.pid, signal.SIGKILL)
    caller.communicate()
    assert wait_until(lambda: not child.alive(), seconds=10)


def a_kubectl_in(context: str, directory: Path) -> list[str]:
    """Stands in for kubectl; it knows nothing but its current context."""
    script = directory / "kubectl"
    script.write_text(f"#!/bin/sh\necho {context}\n")
    script.chmod(0o755)
    return [str(script)]


@pytest.mark.parametrize("context", ["prod-eu", "acme-PRODUCTION", "prd1", "live"])
def test_a_context_that_sounds_like_production_is_refused(context: str, tmp_path: Path):
    with pytest.raises(MissingError, match=f"HEADRACE_CONTEXT={context}"):
        provider.pinned_context(a_kubectl_in(context, tmp_path))


def test_a_context_named_by_its_full_name_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kubectl = a_kubectl_in("product-tests", tmp_path)
    with pytest.raises(MissingError):
        provider.pinned_context(kubectl)
    monkeypatch.setenv("HEADRACE_CONTEXT", "product-tests")
    assert provider.pinned_context(kubectl) == [*kubectl, "--context=product-tests"]


def test_no_current_context_is_said(tmp_path: Path):
    with pytest.raises(MissingError, match="no current context"):
        provider.pinned_context(a_kubectl_in("", tmp_path))


def test_an_unknown_kind_of_cluster_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HEADRACE_CLUSTER", "minikube")
    with pytest.raises(MissingError, match="native, kind or current"), provider.running_cluster(tmp_path):
        raise AssertionError("a cluster came up")


def an_apt(directory: Path, *, candidate: str) -> None:
    """Stands in for apt and dpkg-deb: knows one version, and unpacks two programs."""
    scripts = {
        "apt-cache": f"echo '  Candidate: {candidate}'",
        "apt-get": 'echo "$@" >> "$(dirname "$0")/asked"; touch prometheus_1_all.deb',
        "dpkg-deb": 'mkdir -p "$3/usr/bin" && touch "$3/usr/bin/prometheus" "$3/usr/bin/promtool"',
    }
    for name, text in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)


def test_prometheus_is_fetched_once_per_version_and_never_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    an_apt(tmp_path, candidate="2.42.0+ds-5")
    first = prometheus.ensure()
    assert first.promtool.exists()
    assert prometheus.ensure() == first
    an_apt(tmp_path, candidate="2.43.0")
    assert prometheus.ensure() != first
    assert (tmp_path / "asked").read_text().splitlines() == ["download -qq prometheus"] * 2


def test_without_lists_of_packages_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    an_apt(tmp_path, candidate="(none)")
    with pytest.raises(MissingError, match="apt-get update"):
        prometheus.ensure()
