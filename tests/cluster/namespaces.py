"""A node's namespaces (network, mounts, processes): made, joined by cables, found again, removed.

The kernel ends them together with their first process, and with them every process, mount, interface, route
and iptables rule in them. So there is nothing to record and little to clean up: a crash of any part leaves no
more behind than `down` does.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from .layout import FIRST, MACHINE_ADDRESS, MACHINE_LINK, SERVICES, Node, log_dir, state_dir
from .processes import NotReadyError, Process, start, wait_until

# Seen in the list of processes, and how a later command finds the node again.
MARK = "--headrace-node="
SIZE_MARK = "--of-nodes="

# What a node's own /run calls itself.
RUN_MOUNT = "node-run"

# Each node has its own.
HIDDEN_FROM_NODES = ("/run", "/var/lib", "/var/log")

# kubelet insists on these kernel settings, and would change them for the whole machine. It gets what it wants
# to see, in its own mounts only.
KERNEL_SETTINGS_FOR_KUBELET = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def running() -> dict[int, Process]:
    """The first process of each node that runs, by the node's number."""
    found: dict[int, Process] = {}
    for process, arguments in every_process():
        mark = next((argument for argument in arguments if argument.startswith(MARK)), None)
        # `unshare` has the same arguments, but is not inside.
        if mark is not None and _is_first_of_its_namespace(process):
            number = int(mark.removeprefix(MARK))
            # It may have ended since it was listed.
            with contextlib.suppress(NotReadyError):
                found[number] = Process.of_pid(f"node{number}", int(process.name))
    return found


def still_ending() -> list[int]:
    """Pids outside that wait for the end of a node. Its first process has no arguments any more by then."""
    return [
        int(process.name)
        for process, arguments in every_process()
        if any(argument.startswith(MARK) for argument in arguments)
        and not _is_first_of_its_namespace(process)
    ]


def size_of_its_cluster(node: Process) -> int | None:
    """How many nodes were started with this one; None when it has just ended."""
    for process, arguments in every_process():
        if process.name == str(node.pid):
            marks = [argument for argument in arguments if argument.startswith(SIZE_MARK)]
            return int(marks[0].removeprefix(SIZE_MARK)) if marks else None
    return None


def processes_of_nodes() -> list[Path]:
    """In /proc: all that run in a node or in a pod, and `nsenter` and `unshare`, which wait for them outside.

    Known by what is mounted where they look, so that they are found also when the node's first process is
    gone. Only root sees them all.
    """
    own = Path("/proc/self/ns/mnt").readlink()
    found = {Path(f"/proc/{pid}") for pid in still_ending()}
    for process, _ in every_process():
        with contextlib.suppress(OSError):
            if (process / "ns/mnt").readlink() != own:
                mounts = (process / "mountinfo").read_text()
                if f" {RUN_MOUNT} " in mounts or f"{state_dir()}/" in mounts:
                    found.add(process)
    return sorted(found)


def open_node(node: Node, *, node_count: int) -> Process:
    script = Path(__file__).with_name("node_init.py")
    unshare = [
        "unshare",
        "--mount",
        "--propagation=private",
        "--net",
        "--uts",
        "--pid",
        "--fork",
        "--kill-child",
    ]
    marks = [f"{MARK}{node.number}", f"{SIZE_MARK}{node_count}"]
    start(
        node.name,
        [*unshare, "--mount-proc", sys.executable, "-IS", str(script), *marks],
        log=log_dir() / f"{node.name}.log",
    )
    if not wait_until(lambda: node.number in running(), seconds=10):
        raise NotReadyError(f"the namespaces of {node.name} could not be made: see {log_dir()}")
    process = running()[node.number]
    _arrange_mounts(process, node)
    return process


def close_nodes() -> None:
    for process in running().values():
        _wake_those_inside(process)
        process.end(patience_seconds=0.5)
    wait_until(lambda: not running() and not still_ending(), seconds=60)
    wait_until(lambda: not Path(f"/sys/class/net/{MACHINE_LINK}").exists(), seconds=60)


def _wake_those_inside(node: Process) -> None:
    """`nsenter` stops with the program that it started, and a node does not end while its parent sleeps."""
    for process, arguments in every_process():
        if f"--target={node.pid}" in arguments:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGCONT)


def enter(process: Process, command: list[str]) -> list[str]:
    """The command that runs `command` inside the node."""
    return ["nsenter", f"--target={process.pid}", "--mount", "--net", "--uts", "--pid", "--", *command]


def run_inside(process: Process, command: list[str], *, stdin: str | None = None) -> str:
    done = subprocess.run(
        enter(process, command), input=stdin, capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode != 0:
        raise NotReadyError(f"`{' '.join(command)}` failed on {process.name}: {done.stderr.strip()[-1500:]}")
    return done.stdout


def processes_inside(process: Process) -> dict[str, int]:
    """Name -> pid of what runs on a node, its pods' processes included. Only root may look."""
    inside: dict[str, int] = {}
    for other in _in_the_same(process, "pid"):
        with contextlib.suppress(OSError):
            inside[(other / "comm").read_text().strip()] = int(other.name)
    return inside


def programs_inside(process: Process) -> dict[str, Path]:
    """Name -> file of what runs on a node outside its pods. Only root may look."""
    inside: dict[str, Path] = {}
    for other in _in_the_same(process, "mnt"):
        with contextlib.suppress(OSError):
            # The kernel says so of a file that was removed since; the program runs on.
            file = Path(str((other / "exe").readlink()).removesuffix(" (deleted)"))
            inside[file.name] = file
    return inside


def _in_the_same(process: Process, namespace: str) -> Iterator[Path]:
    """Nobody, where the process has just ended."""
    with contextlib.suppress(FileNotFoundError):
        own = Path(f"/proc/{process.pid}/ns/{namespace}").readlink()
        for other, _ in every_process():
            with contextlib.suppress(OSError):
                if (other / "ns" / namespace).readlink() == own:
                    yield other


def lay_cables(first: Process, others: dict[Node, Process]) -> None:
    """A switch in the first node; this machine and every node plugged into it. No route leads out."""
    inside_first = _ip_in(first)
    inside_first("link add switch0 type bridge")
    inside_first("link set switch0 up")
    inside_first(f"addr add {FIRST.address}/24 dev switch0")
    inside_first("link set lo up")
    _ip(f"link add {MACHINE_LINK} type veth peer name machine netns {first.pid}")
    _ip(f"addr add {MACHINE_ADDRESS}/24 dev {MACHINE_LINK}")
    _ip(f"link set {MACHINE_LINK} up")
    inside_first("link set machine master switch0 up")
    for node, process in others.items():
        inside = _ip_in(process)
        _ip(f"link add uplink netns {process.pid} type veth peer name {node.name} netns {first.pid}")
        inside(f"addr add {node.address}/24 dev uplink")
        inside("link set uplink up")
        inside("link set lo up")
        inside_first(f"link set {node.name} master switch0 up")
    everyone = {FIRST: first, **others}
    for process in everyone.values():
        run_inside(process, ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
    for node in everyone:
        for other, process in everyone.items():
            if node != other:
                _ip_in(process)(f"route add {node.pods} via {node.address}")
        _ip(f"route add {node.pods} via {node.address} dev {MACHINE_LINK}")
    # So that tests on this machine may call a service by its address.
    _ip(f"route add {SERVICES} via {FIRST.address} dev {MACHINE_LINK}")


def _arrange_mounts(process: Process, node: Node) -> None:
    logs, libraries, settings = (node.scratch / name for name in ("log", "lib", "kernel-settings"))
    for directory in (logs, libraries, settings):
        directory.mkdir(parents=True, exist_ok=True)
    # /run: sockets, the runtime's state, the pods' network namespaces, etcd's data: in memory and private.
    run_inside(process, ["mount", "-t", "tmpfs", "-o", "mode=755", RUN_MOUNT, "/run"])
    run_inside(process, ["mount", "--bind", str(logs), "/var/log"])
    # kubelet and the CNI library write to /var/lib whatever their settings say.
    run_inside(process, ["mount", "--bind", str(libraries), "/var/lib"])
    run_inside(process, ["hostname", node.name])
    for setting, value in KERNEL_SETTINGS_FOR_KUBELET.items():
        if not Path(f"/proc/sys/{setting}").exists():
            continue
        pretended = settings / setting.replace("/", "_")
        pretended.write_text(f"{value}\n")
        run_inside(process, ["mount", "--bind", str(pretended), f"/proc/sys/{setting}"])


def _ip_in(process: Process) -> Callable[[str], None]:
    def run(arguments: str) -> None:
        run_inside(process, ["ip", *arguments.split()])

    return run


def _ip(arguments: str) -> None:
    done = subprocess.run(["ip", *arguments.split()], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotReadyError(f"`ip {arguments}` failed: {done.stderr.strip()}")


def every_process() -> Iterator[tuple[Path, list[str]]]:
    """In /proc, with its arguments."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError, UnicodeDecodeError):
                yield process, (process / "cmdline").read_text().split("\0")


def _is_first_of_its_namespace(process: Path) -> bool:
    try:
        inner_pids = _status_field(process, "NSpid").split()
    except OSError:
        return False
    return len(inner_pids) > 1 and inner_pids[-1] == "1"


def _status_field(process: Path, field: str) -> str:
    lines = (process / "status").read_text().splitlines()
    return next((line.partition(":")[2] for line in lines if line.startswith(f"{field}:")), "")
