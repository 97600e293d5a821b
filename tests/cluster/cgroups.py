"""Each node's own corner of the cgroup tree: two kubelets in one place would remove each other's pods."""

import os
from pathlib import Path

from .layout import Node
from .processes import wait_until

ROOT = Path("/sys/fs/cgroup")
OURS = "headrace"


def make(node: Node) -> None:
    if _unified():
        _delegate(ROOT, node.cgroup)
        return
    for controller in _controller_trees():
        path = controller
        for part in Path(node.cgroup).parts:
            path = path / part
            path.mkdir(exist_ok=True)
            # A cpuset is born empty, and a process cannot enter an empty one.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (path / file).exists() and not (path / file).read_text().strip():
                    (path / file).write_text((path.parent / file).read_text())


def remove() -> None:
    for top in _leftovers():
        wait_until(lambda top=top: _removed(top), seconds=10)


def left() -> list[Path]:
    return _leftovers()


def _removed(top: Path) -> bool:
    for directory, _, _ in os.walk(top, topdown=False):
        try:
            Path(directory).rmdir()
        except OSError:
            return False  # A killed process may still be leaving.
    return True


def _leftovers() -> list[Path]:
    # In the hybrid layout runc also leaves a directory in the v2 tree, though no controller is in it.
    parents = [ROOT, ROOT / "unified", *_controller_trees()]
    return [parent / OURS for parent in parents if (parent / OURS).exists()]


def _controller_trees() -> list[Path]:
    """cgroup v1: one tree per controller; some are links to a tree of two."""
    if _unified():
        return []
    trees = [path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink()]
    return [tree for tree in trees if tree.name not in ("unified", OURS)]


def _unified() -> bool:
    return (ROOT / "cgroup.controllers").exists()


def _delegate(root: Path, below: str) -> None:
    """cgroup v2: a child has a controller only where its parent hands it down."""
    path = root
    for part in Path(below).parts:
        for controller in (path / "cgroup.controllers").read_text().split():
            (path / "cgroup.subtree_control").write_text(f"+{controller}")
        path = path / part
        path.mkdir(exist_ok=True)
    for controller in (path / "cgroup.controllers").read_text().split():
        (path / "cgroup.subtree_control").write_text(f"+{controller}")
