"""The pod that looks for work while a job sleeps, as it is seen. It is made in starting.py. Pure."""

from __future__ import annotations

import contextlib

from headrace.api import StreamJobStatus
from headrace.core.manifests.keeper_pod import TRY_LABEL
from headrace.core.manifests.lookout_pod import EVERY_LABEL
from headrace.core.model import Job, ObservedLookout
from headrace.kube.client import Object
from headrace.kube.found import Found, is_leaving
from headrace.kube.labels import label
from headrace.kube.memory import Memory
from headrace.kube.pods import DRIVER_CONTAINER, ended_of, is_running, keeper_result, waiting_of

_WORDS = ("Work", "Blind")


def observed_lookout(
    job: Job, status: StreamJobStatus, found: Found, memory: Memory
) -> ObservedLookout | None:
    """The one that the status names; None where it is not there."""
    if status.sleep is None:
        return None
    number = status.sleep.lookout
    pod = next((pod for pod in found.lookouts if label(pod, TRY_LABEL) == str(number)), None)
    if pod is None:
        refused = memory.lookout_problems.get((job.uid, number))
        return ObservedLookout(number=number, made=False, waiting=refused) if refused is not None else None
    ended = ended_of(pod)
    words = keeper_result(pod, DRIVER_CONTAINER) if ended is not None else {}
    said = words.get("reason")
    return ObservedLookout(
        number=number,
        running=is_running(pod) and not is_leaving(pod),
        ended=ended is not None or is_leaving(pod),
        found=said if said in _WORDS else None,
        message=str(words.get("message") or "")[:1000],
        every_seconds=_every(pod),
        waiting=waiting_of(pod.get("status", {})) if ended is None else None,
    )


def _every(pod: Object) -> float | None:
    with contextlib.suppress(ValueError):
        return float(label(pod, EVERY_LABEL))
    return None
