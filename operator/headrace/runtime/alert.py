"""What an alert is, and the words that several of them use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

DESCRIBE = "kubectl -n {{ $labels.namespace }} describe streamjob {{ $labels.job }}"
QUERY = "{{ $labels.query }}"
DURATION = "{{ $value | humanizeDuration }}"
JOB = "{{ $labels.namespace }}/{{ $labels.job }}"


@dataclass(frozen=True, kw_only=True)
class Alert:
    name: str
    group: Literal["jobs", "operator"]
    expr: str
    # How long it must last.
    lasts: str | None = None
    severity: Literal["warning", "critical"]
    summary: str
    description: str
    # The runbook: what it means, where to look, what to do.
    means: str
    look: Sequence[str]
    act: Sequence[str]
