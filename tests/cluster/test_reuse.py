"""Which cluster is reused, replaced or refused, and who ends it. Nothing is started."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import __main__ as command_line
from tests.cluster import binaries, debian, layout, namespaces, native, provider, reuse
from tests.cluster.api import Api
from tests.cluster.console import MissingError
from tests.cluster.processes import Process, wait_until
from tests.cluster.reuse import Seen

WANTED = {name: Path(f"/cache/bin/{name}") for name in (*reuse.ON_EVERY_NODE, *reuse.ON_FIRST_NODE)}


def programs(node: int) -> dict[str, Path]:
    names = (*reuse.ON_EVERY_NODE, *(reuse.ON_FIRST_NODE if node == 1 else ()))
    return {"containerd": Path("/usr/bin/containerd"), **{name: WANTED[name] for name in names}}


def seen(nodes: int = 2, **changes: Any) -> Seen:
    return Seen(
        **{"programs": {number: programs(number) for number in range(1, nodes + 1)}, "size": nodes, **changes}
    )


def test_what_was_started_to_its_end_is_whole():
    assert reuse.crashed(seen(1)) == reuse.crashed(seen(2)) == []
    assert reuse.belongs_elsewhere(seen(), WANTED) is None


def test_a_crash_is_told_by_what_is_missing():
    assert reuse.crashed(seen(programs={1: programs(1)})) == ["node2"]
    without = {name: file for name, file in programs(1).items() if name != "kube-apiserver"}
    assert reuse.crashed(seen(programs={1: without, 2: programs(2)})) == ["kube-apiserver of node1"]
    assert "coredns of node1" in reuse.crashed(seen(programs={1: {}, 2: {}}))


def test_other_versions_are_not_reused():
    renewed = {**WANTED, "kube-apiserver": Path("/cache/newer/kube-apiserver")}
    why = reuse.belongs_elsewhere(seen(), renewed)
    assert why is not None
    assert "/cache/bin/kube-apiserver" in why and "/cache/newer/kube-apiserver" in why


def test_only_a_number_that_was_asked_for_can_differ():
    assert reuse.other_size(seen(1), None) is None
    assert reuse.other_size(seen(1), 1) is None
    assert "NODES=2" in (reuse.other_size(seen(1), 2) or "")


class Machine:
    """Stands in for what `up` finds and does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running: dict[int, Process] = {}
        self.seen = seen()
        self.answers: Iterator[bool] = iter(())
        self.done: list[str] = []
        monkeypatch.setattr(debian, "need_root", lambda: None)
        monkeypatch.setattr(debian, "need", lambda _: None)
        monkeypatch.setattr(binaries, "program", lambda name: WANTED.get(name, Path("/cache/bin") / name))
        monkeypatch.setattr(binaries, "ensure", lambda names: {name: WANTED.get(name) for name in names})
        monkeypatch.setattr(namespaces, "running", lambda: dict(self.running))
        monkeypatch.setattr(native, "_look_at", lambda _: self.seen)
        monkeypatch.setattr(native, "_healthy", lambda _: next(self.answers))
        monkeypatch.setattr(native, "_remove", self._remove)
        monkeypatch.setattr(native, "_start", self._start)

    def runs(self, cluster: Seen, *answers: bool) -> dict[int, Process]:
        self.seen, self.answers = cluster, iter(answers)
        self.running = {number: Process(f"node{number}", 100 + number, 7) for number in cluster.programs}
        return self.running

    def _remove(self) -> None:
        self.done.append("remove")
        self.running = {}

    def _start(self, _: object, nodes: list[layout.Node]) -> native.Native:
        self.done.append(f"start {len(nodes)}")
        self.running = {node.number: Process(node.name, 200 + node.number, 8) for node in nodes}
        return native.Native(self.running, layout.admin_kubeconfig(), started_here=True)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in ("NODES", "HEADRACE_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    return Machine(monkeypatch)


def test_where_nothing_runs_two_nodes_are_started(machine: Machine):
    assert native.up().started_here
    assert machine.done == ["remove", "start 2"]


def test_one_late_answer_does_not_cost_the_cluster(machine: Machine):
    nodes = machine.runs(seen(2), False, False, True)
    found = native.up(node_count=2)
    assert (found.nodes, found.started_here) == (nodes, False)
    assert machine.done == []


def test_a_cluster_that_never_answers_is_left_to_its_user(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "HEALTH_PATIENCE_SECONDS", 0)
    machine.runs(seen(2), False, False)
    with pytest.raises(MissingError, match="make cluster-down"):
        native.up()
    assert machine.done == []


def test_another_number_of_nodes_is_refused_and_the_cluster_stays(machine: Machine):
    machine.runs(seen(1), True)
    with pytest.raises(MissingError, match=r"1 node\(s\), and NODES=2 is wanted.*\n.*make cluster-down"):
        native.up(node_count=2)
    assert machine.done == []


def test_whoever_asks_for_no_number_takes_what_runs(machine: Machine):
    nodes = machine.runs(seen(1), True)
    assert native.up().nodes == nodes


def test_a_cluster_of_other_versions_is_refused_and_stays(machine: Machine):
    old = {number: {**programs(number), "kubelet": Path("/cache/old/kubelet")} for number in (1, 2)}
    machine.runs(seen(programs=old), True)
    with pytest.raises(MissingError, match="/cache/old/kubelet"):
        native.up()
    assert machine.done == []


def test_a_crashed_cluster_is_replaced(machine: Machine):
    machine.runs(seen(programs={1: programs(1)}))
    assert native.up(node_count=2).started_here
    assert machine.done == ["remove", "start 2"]


def test_a_start_that_fails_leaves_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(native, "_start", fails)
    with pytest.raises(KeyboardInterrupt):
        native.up()
    assert machine.done == ["remove", "remove"]


@pytest.fixture
def no_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Api, "from_kubeconfig", lambda _: Api.plain("http://127.0.0.1"))


@pytest.mark.usefixtures("no_api")
def test_tests_leave_what_they_found_and_end_what_they_started(machine: Machine, tmp_path: Path):
    machine.runs(seen(2), True)
    with provider.running_cluster(tmp_path):
        pass
    assert machine.done == []
    machine.running = {}
    with provider.running_cluster(tmp_path):
        pass
    assert machine.done == ["remove", "start 2", "remove"]


@pytest.mark.usefixtures("no_api")
def test_tests_end_what_they_started_in_the_place_of_a_crashed_one(machine: Machine, tmp_path: Path):
    machine.runs(seen(programs={1: programs(1)}))
    with provider.running_cluster(tmp_path):
        pass
    assert machine.done == ["remove", "start 2", "remove"]


@pytest.mark.usefixtures("no_api")
def test_tests_do_not_end_what_somebody_started_in_the_place_of_theirs(machine: Machine, tmp_path: Path):
    with provider.running_cluster(tmp_path):
        machine.runs(seen(2), True)
    assert machine.done == ["remove", "start 2"]


def test_starts_and_ends_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "LOCKED_DIRECTORY", str(tmp_path))
    script = (
        "import sys; from tests.cluster import native\n"
        f"native.LOCKED_DIRECTORY = {str(tmp_path)!r}\n"
        "with native._only_one_at_a_time(): print('mine', flush=True)"
    )
    with native._only_one_at_a_time():
        other = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert other.stderr is not None
        assert "waiting for another" in other.stderr.readline()
        assert other.poll() is None
    assert other.communicate(timeout=60)[0] == "mine\n"
    assert list(tmp_path.iterdir()) == []


def test_a_node_that_ends_while_it_is_listed_is_not_running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    gone = tmp_path / str(2**22 + 1)  # More than any pid.
    monkeypatch.setattr(namespaces, "every_process", lambda: iter([(gone, [f"{namespaces.MARK}1"])]))
    monkeypatch.setattr(namespaces, "_is_first_of_its_namespace", lambda _: True)
    assert namespaces.running() == {}
    assert native.find() is None


def test_the_size_of_a_cluster_stands_in_the_list_of_processes():
    # Without the other mark: a cluster that really runs here must not take it for a node.
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", f"{namespaces.SIZE_MARK}2"]
    sleeper = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        process = Process.of_pid("node1", sleeper.pid)
        assert wait_until(lambda: namespaces.size_of_its_cluster(process) == 2, seconds=10)
    finally:
        sleeper.communicate()


def test_only_root_ends_a_cluster(machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["tests.cluster", "down"])
    assert command_line.main() == 1
    assert "as root" in capsys.readouterr().err


def test_others_are_told_that_a_cluster_runs(machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    machine.runs(seen(2))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["tests.cluster", "status"])
    assert command_line.main() == 0
    assert "only root may look into it" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["up", "down", "status"])
def test_there_is_nothing_to_start_or_to_end_in_the_current_context(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    monkeypatch.setenv("HEADRACE_CLUSTER", "current")
    monkeypatch.setattr(sys, "argv", ["tests.cluster", command])
    assert command_line.main() == 1
    assert "nothing to start or to end" in capsys.readouterr().err
