"""Where runs live: as local processes now, as pods to come. No lifecycle rule exists twice."""

from __future__ import annotations

from typing import Protocol

from headrace.api import StreamJobStatus
from headrace.core.actions import Action
from headrace.core.model import Job, Observed


class Substrate(Protocol):
    def observe(self, job: Job, status: StreamJobStatus) -> Observed:
        """Look at everything the planner needs. Never changes anything."""
        ...

    def perform(self, job: Job, action: Action) -> None:
        """Carry one action out, or find that it was already. Raises only for what should not happen."""
        ...
