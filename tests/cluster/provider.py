"""Which Kubernetes the tests use. HEADRACE_CLUSTER says: `native` (the default), `kind` or `current`."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import binaries, images, kind, layout, native
from .api import Api, Object
from .console import MissingError, say
from .processes import NotReadyError, Process, start, wait_until

# The CRDs' rules use quantity(): since 1.28 a server knows it, and since 1.29 it takes new rules with it.
LEAST_KUBERNETES = (1, 29)

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


def chosen() -> str:
    """By HEADRACE_CLUSTER."""
    name = os.environ.get("HEADRACE_CLUSTER") or "native"
    if name not in ("native", "kind", "current"):
        raise MissingError(f"HEADRACE_CLUSTER={name}: native, kind or current, please.")
    return name


def wanted_nodes() -> int | None:
    """By NODES; None where any number will do."""
    wanted = os.environ.get("NODES")
    if wanted and not wanted.isdigit():
        raise MissingError(f"NODES={wanted}: a number, please.")
    return int(wanted) if wanted else None


@contextmanager
def running_cluster(directory: Path) -> Iterator[Cluster]:
    """What was found running (`make cluster`) is left running; what was started here is ended here."""
    match chosen():
        case "native":
            own = native.up(node_count=wanted_nodes())
            try:
                yield _native(own)
            finally:
                if own.started_here:
                    native.down_if_still(own)
        case "kind":
            made = kind.up(node_count=wanted_nodes())
            try:
                command = [any_kubectl(), f"--kubeconfig={made.kubeconfig}"]
                with _through_proxy("kind", command, directory, load=_loader(made)) as cluster:
                    cluster.kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=180s")
                    yield cluster
            finally:
                if made.started_here:
                    made.down()
        case _:
            command = pinned_context([any_kubectl()])
            with _through_proxy("current", command, directory, load=_already_there) as cluster:
                yield cluster


def _native(cluster: native.Native) -> Cluster:
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


def _loader(made: kind.Kind) -> Callable[[ImageToLoad], None]:
    def load(image: ImageToLoad) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            made.load(image.archive(Path(scratch) / "load.tar"))

    return load


def _already_there(image: ImageToLoad) -> None:
    """A foreign cluster pulls its images, by the names that `python -m tests.e2e` prints."""
    if "HEADRACE_IMAGE_REPOSITORY" not in os.environ:
        raise MissingError(
            "HEADRACE_CLUSTER=current needs HEADRACE_IMAGE_REPOSITORY, from which this cluster can pull "
            f"{image.reference.rpartition('/')[2]}. Set it, run `python -m tests.e2e`, and push all images "
            "that it names: operator, spark, services, ledger and foreign."
        )


def pinned_context(kubectl: list[str]) -> list[str]:
    """kubectl for the context that is current now, whatever becomes current later.

    Tests create and delete without asking: not where it could hurt, unless that very context is named.
    """
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
    return [*kubectl, f"--context={name}"]


def refuse_too_old(version: Object) -> None:
    """As the API server tells it: {"major": "1", "minor": "35+"}."""
    found = tuple(int(re.sub(r"\D.*", "", str(version.get(part))) or 0) for part in ("major", "minor"))
    if found < LEAST_KUBERNETES:
        least, has = (".".join(map(str, one)) for one in (LEAST_KUBERNETES, found))
        raise MissingError(
            f"This cluster is Kubernetes {has}, and Headrace needs {least} or newer: the CRDs would be "
            "refused. With kind, HEADRACE_KIND_IMAGE names the node image."
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
        api = Api.plain(f"http://{found[0]}")
        refuse_too_old(api.get("/version").need())
        yield Cluster(name, api, tuple(kubectl), load, {})
    finally:
        proxy.end()


def any_kubectl() -> str:
    return shutil.which("kubectl") or str(binaries.ensure(("kubectl",))["kubectl"])
