"""What all work by keeper pods shares: one after another, patiently, until one has done it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import timedelta

from headrace.core.manifests.keeper_pod import TRY_LABEL
from headrace.kube.client import Api, Object
from headrace.kube.errors import NotFound
from headrace.kube.found import is_leaving, name_of, uid_of
from headrace.kube.labels import label, number_in
from headrace.kube.memory import Memory
from headrace.kube.resources import PODS

_FIRST_WAIT_SECONDS = 5
_LONGEST_WAIT_SECONDS = 300


def next_try(tries: Sequence[Object], memory: Memory) -> int | None:
    """Its number, counted from 1; None before it is due. `tries` have all ended, oldest first."""
    if not tries:
        return 1
    number = number_in(tries[-1], TRY_LABEL) or 0
    # Since it was first seen to have failed: when that was, its node says, by a clock of its own.
    over = memory.lasting(memory.over_since, uid_of(tries[-1]))
    return number + 1 if over >= _wait_after(number) else None


def waits_in_vain(pod: Object, mark: str, current: str) -> bool:
    """It has not begun, and was made from a spec that was edited since: for one node selector, say."""
    pending = pod.get("status", {}).get("phase") == "Pending"
    return pending and not is_leaving(pod) and label(pod, mark) != current


async def remove_pods(api: Api, namespace: str, pods: Iterable[Object]) -> None:
    for pod in pods:
        with contextlib.suppress(NotFound):
            await api.delete(PODS, namespace, name_of(pod), uid=uid_of(pod))


def _wait_after(number: int) -> timedelta:
    """Doubling from a few seconds to a few minutes."""
    return timedelta(
        seconds=min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** min(max(number - 1, 0), 10))
    )
