"""`python -m tests.cluster <command>`: see README.md."""

import argparse
import os
import subprocess
import sys

from . import binaries, debian, kind, layout, leftovers, namespaces, native, prometheus, provider
from .console import MissingError, say
from .paths import cache_dir
from .processes import NotReadyError

SHOWN = ("get", "nodes,pods", "--all-namespaces", "-o", "wide")


def main() -> int:
    arguments = _parse()
    try:
        return COMMANDS[arguments.command](arguments)
    except (MissingError, NotReadyError) as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 130


def _setup(_: argparse.Namespace) -> int:
    debian.install({**debian.FOR_CLUSTER, **debian.FOR_IMAGES})
    say(f"Prometheus: {prometheus.ensure(refresh=True).prometheus}")
    return 0


def _build(arguments: argparse.Namespace) -> int:
    names = {
        "apiserver": binaries.API_SERVER_PROGRAMS,
        "cluster": binaries.CLUSTER_PROGRAMS,
        "helm": ("helm",),
        "s3": ("versitygw", "minio"),
    }
    binaries.ensure(names[arguments.what])
    return 0


def _up(arguments: argparse.Namespace) -> int:
    wanted = arguments.nodes if arguments.nodes is not None else provider.wanted_nodes()
    if _own_kind() == "kind":
        made = kind.up(node_count=wanted)
        say(f"KUBECONFIG={made.kubeconfig}")
    else:
        native.up(node_count=wanted)
    return 0


def _down(_: argparse.Namespace) -> int:
    if _own_kind() == "kind":
        found = kind.find()
        if found is not None:
            found.down()
        say("no kind cluster is left")
        return 0
    native.down()
    leftovers.remove_images_run_directory()
    left = leftovers.left_over()
    for line in leftovers.listing(left):
        say(line)
    clean = not any(left.values())
    say(f"nothing is left but the cache, {cache_dir()}" if clean else "could not remove everything")
    return 0 if clean else 1


def _status(_: argparse.Namespace) -> int:
    if _own_kind() == "kind":
        if kind.find() is None:
            say("no kind cluster runs")
            return 1
        return _kubectl(argparse.Namespace(arguments=SHOWN))
    cluster = native.find()
    if cluster is None:
        say("no cluster runs")
    elif os.geteuid() != 0:
        say(f"a cluster of {len(cluster.nodes)} node(s) runs; only root may look into it")
        return 0
    missing = binaries.missing(binaries.CLUSTER_PROGRAMS)
    say(f"programs: {'all in the cache' if not missing else 'to be compiled: ' + ' '.join(missing)}")
    if cluster is None:
        return 1
    for number, process in sorted(cluster.nodes.items()):
        inside = namespaces.processes_inside(process)
        say(f"node{number}: pid {process.pid}, {len(inside)} kinds of process inside")
    say(f"KUBECONFIG={cluster.kubeconfig}")
    sys.stdout.write(cluster.kubectl(*SHOWN))
    return 0


def _kubectl(arguments: argparse.Namespace) -> int:
    if _own_kind() == "kind":
        program, kubeconfig = provider.any_kubectl(), kind.kubeconfig_path()
    else:
        program, kubeconfig = str(binaries.program("kubectl")), layout.admin_kubeconfig()
    command = [program, f"--kubeconfig={kubeconfig}", *arguments.arguments]
    return subprocess.run(command, check=False).returncode


def _own_kind() -> str:
    """Which of the two that can be started and ended here."""
    if (name := provider.chosen()) == "current":
        raise MissingError(
            "HEADRACE_CLUSTER=current is whatever kubectl points at: there is nothing to start or to end "
            "here. The tests use it as it is; `native` and `kind` are started here."
        )
    return name


COMMANDS = {
    "setup": _setup,
    "build": _build,
    "up": _up,
    "down": _down,
    "status": _status,
    "kubectl": _kubectl,
}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster", description="A real Kubernetes, no Docker."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="get the Debian packages that are missing (as root)")
    build = commands.add_parser("build", help="compile Kubernetes, etcd and CoreDNS into the cache")
    build.add_argument("what", nargs="?", choices=["cluster", "apiserver", "helm", "s3"], default="cluster")
    up = commands.add_parser("up", help="start the cluster, or reuse the one that runs")
    up.add_argument("--nodes", type=int, help="how many; else NODES, else what runs, else two")
    commands.add_parser("down", help="end it and leave nothing but the cache")
    commands.add_parser("status", help="say what runs")
    kubectl = commands.add_parser("kubectl", help="kubectl against the cluster")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
