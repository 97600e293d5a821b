"""How a container's memory is shared out, and what it asks of a node."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api.pods import PodSettings
from headrace.core.manifests.attempt import Manifest

_MEBIBYTE = 2**20


@dataclass(frozen=True)
class MemoryShares:
    """Together they are the container's memory: request and limit."""

    heap_mib: int
    overhead_mib: int


def memory_shares(settings: PodSettings) -> MemoryShares:
    """Python workers and RocksDB live beside the heap."""
    total = settings.memory.bytes // _MEBIBYTE
    given = settings.memory_overhead
    overhead = (given.bytes if given is not None else settings.default_overhead_bytes) // _MEBIBYTE
    return MemoryShares(heap_mib=total - overhead, overhead_mib=overhead)


def resources(settings: PodSettings) -> Manifest:
    memory = {"memory": f"{settings.memory.bytes // _MEBIBYTE}Mi"}
    return {
        "requests": {"cpu": str(settings.cores), **settings.resources.requests, **memory},
        "limits": {**settings.resources.limits, **memory},
    }


def extra_resources(settings: PodSettings) -> Manifest:
    """What Spark does not set by itself from cores and memory."""
    known = ("cpu", "memory")
    return {
        "requests": {key: value for key, value in settings.resources.requests.items() if key not in known},
        "limits": {key: value for key, value in settings.resources.limits.items() if key not in known},
    }
