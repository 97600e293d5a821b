"""Which Kubernetes the tests use. HEADRACE_CLUSTER says: `native` (the default), `kind` or `current`."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import binaries, images, layout, native
from .api import Api
from .console import MissingError, say
from .processes import NotReadyError, Process, start, wait_until

# A cluster that people rely on often says so in its name.
PRODUCTION = re.compile(r"prod|prd|live", re.IGNORECASE)


@dataclass(frozen=True)
class ImageToLoad:
    """An image by its name, and how to get it as a file where a cluster can take no name."""

    reference: str
    archive: Callable[[Path], Path]


@dataclass(frozen=True)
class Cluster:
    """A running cluster, whichever it is."""

    name: str
    api: Api
    kubectl_command: tuple[str, ...]
    load: Callable[[ImageToLoad], None]
    nodes: dict[int, Process]
    """The native cluster's nodes, for tests that stop one; empty elsewhere."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [*self.kubectl_command, *arguments], input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise NotReadyError(f"`kubectl {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def kill_pod(self, namespace: str, name: str) -> None:
        """Gone from the API at once, whatever its node does."""
        self.kubectl("delete", "pod", name, "-n", namespace, "--grace-period=0", "--force")


@contextmanager
def running_cluster(directory: Path) -> Iterator[Cluster]:
    """What was found running (`make cluster`) is left running; what was started here is ended here."""
    match os.environ.get("HEADRACE_CLUSTER", "native"):
        case "native":
            found = native.find()
            try:
                yield _native()
            finally:
                if found is None:
                    native.down()
        case "kind":
            with _through_proxy("kind", _kind_kubectl(), directory, load=_load_into_kind) as cluster:
                yield cluster
        case "current":
            kubectl = [_any_kubectl()]
            refuse_production(kubectl)
            with _through_proxy("current", kubectl, directory, load=_already_there) as cluster:
                yield cluster
        case other:
            raise MissingError(f"HEADRACE_CLUSTER={other}: native, kind or current, please.")


def _native() -> Cluster:
    cluster = native.up(node_count=int(os.environ.get("NODES", "2")))

    def load(image: ImageToLoad) -> None:
        if all(image.reference in images.names(node) for node in cluster.nodes.values()):
            return
        archive = image.archive(layout.state_dir() / "load.tar")
        say(f"loading {image.reference} into {len(cluster.nodes)} node(s)")
        images.load(cluster.nodes, archive)
        images.forget_older(cluster.nodes, image.reference)
        archive.unlink()

    kubectl = (str(binaries.program("kubectl")), f"--kubeconfig={cluster.kubeconfig}")
    return Cluster("native", Api.from_kubeconfig(cluster.kubeconfig), kubectl, load, cluster.nodes)


def _kind_kubectl() -> list[str]:
    from pytest_kind import KindCluster

    if shutil.which("docker") is None:
        raise MissingError("HEADRACE_CLUSTER=kind needs Docker; `native` does not.")
    found = shutil.which("kind")
    cluster = KindCluster(
        "headrace", image=os.environ.get("HEADRACE_KIND_IMAGE"), kind_path=Path(found) if found else None
    )
    cluster.create()
    return [_any_kubectl(), f"--kubeconfig={cluster.kubeconfig_path}"]


def _load_into_kind(image: ImageToLoad) -> None:
    kind = shutil.which("kind") or next(map(str, Path(".pytest-kind/headrace").glob("kind-*")))
    subprocess.run([kind, "load", "docker-image", "--name", "headrace", image.reference], check=True)


def _already_there(image: ImageToLoad) -> None:
    """A foreign cluster pulls its images, by the names that images/build.py gives them."""
    if "HEADRACE_IMAGE_REPOSITORY" not in os.environ:
        raise MissingError(
            "HEADRACE_CLUSTER=current needs HEADRACE_IMAGE_REPOSITORY, from which this cluster can pull "
            f"{image.reference.rpartition('/')[2]}: set it, run `python images/build.py`, push what it names."
        )


def refuse_production(kubectl: list[str]) -> None:
    """Tests create and delete without asking: not where it could hurt, unless that very context is named."""
    context = subprocess.run(
        [*kubectl, "config", "current-context"], capture_output=True, text=True, check=False
    )
    name = context.stdout.strip()
    if not name:
        raise MissingError("HEADRACE_CLUSTER=current, but kubectl has no current context.")
    if PRODUCTION.search(name) and os.environ.get("HEADRACE_CONTEXT") != name:
        raise MissingError(
            f"The current context is {name!r}, which sounds like production. "
            f"If it is not: HEADRACE_CONTEXT={name}"
        )


@contextmanager
def _through_proxy(
    name: str, kubectl: list[str], directory: Path, *, load: Callable[[ImageToLoad], None]
) -> Iterator[Cluster]:
    """`kubectl proxy` knows every way to log in, so the tests' own client need not."""
    log = directory / "proxy.log"
    proxy = start("kubectl proxy", ["setpriv", "--pdeathsig", "KILL", *kubectl, "proxy", "--port=0"], log=log)
    try:
        wait_until(lambda: "Starting to serve" in log.read_text() or not proxy.alive(), seconds=20)
        found = re.search(r"127\.0\.0\.1:\d+", log.read_text())
        if found is None:
            raise NotReadyError(f"kubectl proxy did not start: {log.read_text()}")
        yield Cluster(name, Api.plain(f"http://{found[0]}"), tuple(kubectl), load, {})
    finally:
        proxy.end()


def _any_kubectl() -> str:
    return shutil.which("kubectl") or str(binaries.ensure(("kubectl",))["kubectl"])
