"""`python -m tests.cluster <command>`: see README.md."""

import argparse
import os
import subprocess
import sys

from . import binaries, debian, layout, namespaces, native, prometheus
from .console import MissingError, say
from .processes import NotReadyError


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
    native.up(node_count=arguments.nodes)
    return 0


def _down(_: argparse.Namespace) -> int:
    native.down()
    remains = native.left_over()
    for what in remains:
        say(f"still there: {what}")
    say("nothing is left but the cache" if not remains else "could not remove everything")
    return 1 if remains else 0


def _status(_: argparse.Namespace) -> int:
    missing = binaries.missing(binaries.CLUSTER_PROGRAMS)
    say(f"programs: {'all in the cache' if not missing else 'to be compiled: ' + ' '.join(missing)}")
    cluster = native.find()
    if cluster is None:
        say("no cluster runs")
        return 1
    for number, process in sorted(cluster.nodes.items()):
        inside = namespaces.processes_inside(process)
        say(f"node{number}: pid {process.pid}, {len(inside)} kinds of process inside")
    say(f"KUBECONFIG={cluster.kubeconfig}")
    sys.stdout.write(cluster.kubectl("get", "nodes,pods", "--all-namespaces", "-o", "wide"))
    return 0


def _kubectl(arguments: argparse.Namespace) -> int:
    command = [
        str(binaries.program("kubectl")),
        f"--kubeconfig={layout.admin_kubeconfig()}",
        *arguments.arguments,
    ]
    return subprocess.run(command, check=False).returncode


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
    up.add_argument("--nodes", type=int, default=int(os.environ.get("NODES", "2")))
    commands.add_parser("down", help="end it and leave nothing but the cache")
    commands.add_parser("status", help="say what runs")
    kubectl = commands.add_parser("kubectl", help="kubectl against the cluster")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
