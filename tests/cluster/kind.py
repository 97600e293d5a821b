"""kind in Docker, through pytest-kind, where no root is to be had: two nodes, named `headrace`."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import layout
from .console import MissingError, say

NAME = "headrace"
# pytest-kind's own default is of 2022, and its Kubernetes too old for our CRDs. A node image belongs to the
# kind that it was made for: both are pinned, and changed together.
VERSION = "v0.31.0"
NODE_IMAGE = "kindest/node:v1.35.0@sha256:452d707d4862f52530247495d180205e029056831160e22870e37e3f6c1ac31f"
USUAL_NODES = 2


@dataclass(frozen=True)
class Kind:
    program: Path
    kubeconfig: Path
    started_here: bool
    """Whether this very call of `up` started it, and may therefore end it."""

    def load(self, archive: Path) -> None:
        _run(self.program, "load", "image-archive", f"--name={NAME}", str(archive))

    def down(self) -> None:
        _run(self.program, "delete", "cluster", f"--name={NAME}", f"--kubeconfig={self.kubeconfig}")
        self.kubeconfig.unlink(missing_ok=True)


def up(*, node_count: int | None = None) -> Kind:
    """Reuses the one that runs, whoever made it."""
    found = find()
    if found is not None:
        say(f"reusing the kind cluster {NAME}")
        return found
    # pytest-kind reads it when it is imported.
    os.environ.setdefault("KIND_VERSION", VERSION)
    from pytest_kind import KindCluster

    program, kubeconfig = _on_path(), kubeconfig_path()
    kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    config = kubeconfig.with_name("kind.json")
    config.write_text(json.dumps(config_of(node_count or USUAL_NODES)))
    image = os.environ.get("HEADRACE_KIND_IMAGE", NODE_IMAGE)
    cluster = KindCluster(NAME, kubeconfig=kubeconfig, image=image, kind_path=program)
    cluster.create(config)
    return Kind(Path(cluster.kind_path), kubeconfig, started_here=True)


def find() -> Kind | None:
    need_docker()
    fetched = Path(f".pytest-kind/{NAME}/kind-{os.environ.get('KIND_VERSION', VERSION)}")
    program = _on_path() or fetched
    if not program.exists() or NAME not in _run(program, "get", "clusters").split():
        return None
    # It may be another checkout's, and pytest-kind would go on with an empty kubeconfig.
    kubeconfig = kubeconfig_path()
    kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    _run(program, "export", "kubeconfig", f"--name={NAME}", f"--kubeconfig={kubeconfig}")
    return Kind(program, kubeconfig, started_here=False)


def kubeconfig_path() -> Path:
    return layout.state_dir() / "kind.kubeconfig"


def config_of(node_count: int) -> dict[str, object]:
    """The first node takes pods as well: kind would keep them off it where there are others."""
    untainted = json.dumps({"kind": "InitConfiguration", "nodeRegistration": {"taints": []}})
    first = {"role": "control-plane", "kubeadmConfigPatches": [untainted]}
    workers = [{"role": "worker"} for _ in range(node_count - 1)]
    return {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": [first, *workers]}


def need_docker() -> None:
    if shutil.which("docker") is None:
        raise MissingError("HEADRACE_CLUSTER=kind needs Docker; `native` does not.")
    asked = subprocess.run(["docker", "info"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        raise MissingError(
            "HEADRACE_CLUSTER=kind needs Docker, which is installed but does not answer: start it, or see "
            f"whether you may use it.\n{asked.stderr.strip()}"
        )


def _on_path() -> Path | None:
    """None: pytest-kind fetches the pinned one."""
    found = shutil.which("kind")
    if found is None:
        return None
    said = _run(Path(found), "version")
    if not new_enough(said):
        raise MissingError(
            f"{found} is too old for the pinned node image: {said.strip()}, and {VERSION} or newer is needed."
            " Renew it, or take it off the PATH: then the right one is fetched."
        )
    return Path(found)


def new_enough(said: str) -> bool:
    """Of `kind version`: "kind v0.31.0 go1.25.5 linux/amd64"."""
    return _numbers(said) >= _numbers(VERSION)


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"v(\d+)\.(\d+)", text)
    return tuple(int(number) for number in found.groups()) if found else (0,)


def _run(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingError(f"`kind {' '.join(arguments)}` failed: {done.stderr.strip()[-2000:]}")
    return done.stdout
