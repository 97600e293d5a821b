"""Candidates: drivers that rehearse the next run beside the one that runs."""

from __future__ import annotations

from headrace.core.manifests.ownership import RUN_LABEL
from headrace.core.model import ObservedCandidate
from headrace.kube.found import Found, label, uid_of
from headrace.kube.pods import ended_of, is_running, waiting_of


def observed_candidates(found: Found) -> tuple[ObservedCandidate, ...]:
    return tuple(
        ObservedCandidate(
            run=int(label(pod, RUN_LABEL)),
            number=number,
            uid=uid_of(pod),
            ended=ended_of(pod),
            running=is_running(pod),
            waiting=waiting_of(pod.get("status", {})) if ended_of(pod) is None else None,
        )
        for number, pod in sorted(found.candidates.items())
    )
