"""Images into the nodes' container stores, and the smallest image there is."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from . import binaries, layout
from .components import CONTAINERD_SOCKET
from .namespaces import run_inside
from .processes import Process

CTR = ["ctr", "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io"]


def load(nodes: dict[int, Process], archive: Path) -> None:
    """From a docker or OCI archive; what a store has already is skipped by its digest."""
    for process in nodes.values():
        run_inside(process, [*CTR, "images", "import", str(archive)])


def forget_older(nodes: dict[int, Process], reference: str) -> None:
    """Tags are digests, so every change of a source adds one: only the newest of a repository is kept."""
    repository = reference.rpartition(":")[0]
    for process in nodes.values():
        older = [name for name in names(process) if name.startswith(f"{repository}:") and name != reference]
        if older:
            run_inside(process, [*CTR, "images", "remove", *older])


def names(node: Process) -> set[str]:
    return set(run_inside(node, [*CTR, "images", "list", "--quiet"]).split())


def forget_containers(node: Process) -> None:
    """What an earlier cluster ran is dead, but still in the kept store: kubelet would wonder about it."""
    for container in run_inside(node, [*CTR, "containers", "list", "--quiet"]).split():
        run_inside(node, [*CTR, "containers", "delete", container])


def pause_archive(target: Path) -> Path:
    """A docker archive with one program in it, written without any image tool."""
    layer = _tar({"pause": binaries.program("pause").read_bytes()}, mode=0o755)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [layout.PAUSE_IMAGE], "Layers": ["layer.tar"]}]
    files = {"config.json": config, "layer.tar": layer, "manifest.json": json.dumps(manifest).encode()}
    target.write_bytes(_tar(files, mode=0o644))
    return target


def _tar(files: dict[str, bytes], *, mode: int) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()
