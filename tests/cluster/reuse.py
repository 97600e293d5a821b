"""Whether the cluster that runs is the one that is wanted. Somebody may be at work on it, and all that is in
it is lost with it: only a crashed one is replaced, and any other that does not fit is left to its user.
"""

from dataclasses import dataclass
from pathlib import Path

from .layout import FIRST

ON_EVERY_NODE = ("kubelet", "kube-proxy")
ON_FIRST_NODE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns")


@dataclass(frozen=True)
class Seen:
    """What runs, as the list of processes shows it."""

    programs: dict[int, dict[str, Path]]
    """Node -> program -> the file that it was started from."""

    size: int
    """How many nodes it was started with."""


def belongs_elsewhere(seen: Seen, wanted: dict[str, Path]) -> str | None:
    """Why it is not this checkout's: other versions, or another cache directory."""
    for node, programs in sorted(seen.programs.items()):
        for name, file in sorted(programs.items()):
            if name in wanted and file != wanted[name]:
                return f"node{node} runs {file}, and wanted is {wanted[name]}"
    return None


def crashed(seen: Seen) -> list[str]:
    """What a cluster that was started to its end would have. CoreDNS comes last, so half a start is seen."""
    gone = [f"node{node}" for node in range(1, seen.size + 1) if node not in seen.programs]
    for node, programs in sorted(seen.programs.items()):
        expected = (*ON_EVERY_NODE, *(ON_FIRST_NODE if node == FIRST.number else ()))
        gone += [f"{name} of node{node}" for name in expected if name not in programs]
    return gone


def other_size(seen: Seen, node_count: int | None) -> str | None:
    """None: whatever size it has is right."""
    if node_count in (None, seen.size):
        return None
    return f"it has {seen.size} node(s), and NODES={node_count} is wanted"
