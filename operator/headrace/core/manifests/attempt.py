"""What the builders are given: one attempt of a run, and what the platform decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.api import StreamJobSpec
from headrace.api.lifecycle import Upgrade
from headrace.api.names import application_id, attempt_name, candidate_name
from headrace.core.manifests.ownership import (
    ATTEMPT_LABEL,
    CANDIDATE_DRIVER_LABEL,
    CANDIDATE_LABEL,
    CANDIDATE_ROLE,
    EPOCH_LABEL,
    JOB_LABEL,
    Manifest,
    job_labels,
    owned_metadata,
)


@dataclass(frozen=True, kw_only=True)
class Platform:
    """What the chart sets for every job of the cluster."""

    job_image: str
    """Spark and Python, for jobs that name no image."""

    headrace_image: str
    """Headrace's own: its init container carries the harness into the job's image."""

    image_pull_policy: str | None = None
    service_account: str = "headrace-driver"
    checkpoint_location: str | None = None
    api_server: str = "https://kubernetes.default.svc"


@dataclass(frozen=True, kw_only=True)
class Candidacy:
    """A driver that rehearses `run` on a fork of what `from_run` has come to."""

    number: int
    from_run: int
    policy: Upgrade


@dataclass(frozen=True, kw_only=True)
class DriverAttempt:
    """One attempt that may write: who it is, what it runs, and what was pinned for it. Or one that may not: a
    candidate, which is started in the same way."""

    namespace: str
    job: str
    job_uid: str
    spec: StreamJobSpec
    run: int
    attempt: int
    epoch: int
    uid: str
    """Of the attempt, as its claim and its agent know it. The pod's own uid is Kubernetes' choice."""

    store: str
    """The job's place in the store: <location>/<namespace>/<name>/<uid>."""

    image: str | None = None
    """The image that the run pinned, by digest; None before anybody knew it."""

    code: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files that the run pinned, by name, when the application comes from a ConfigMap."""

    start: Mapping[str, Any] | None = None
    """Where sources begin in queries that have no checkpoint yet; None: where the code says."""

    repartition: bool = False
    """The state is split into spec.state.partitions before the queries start."""

    check_store: bool = False
    """Look into the store first: is it usable, and does an earlier lineage of the job lie there?"""

    candidacy: Candidacy | None = None

    @property
    def name(self) -> str:
        """Of the driver pod, its Service, its ConfigMap and its Secret."""
        if self.candidacy is not None:
            return candidate_name(self.job, self.candidacy.number)
        return attempt_name(self.job, self.run, self.attempt)

    @property
    def application_id(self) -> str:
        if self.candidacy is not None:
            return candidate_name(self.job, self.candidacy.number)
        return application_id(self.job, self.epoch)

    def image_on(self, platform: Platform) -> str:
        return self.image or self.spec.image or platform.job_image

    def labels(self, role: str) -> dict[str, str]:
        if self.candidacy is not None:
            own = CANDIDATE_ROLE if role == "driver" else role
            named = {CANDIDATE_DRIVER_LABEL: self.name} if role == "driver" else {}
            return {
                **job_labels(self.job, role=own, run=self.run),
                CANDIDATE_LABEL: str(self.candidacy.number),
                **named,
            }
        return {
            **job_labels(self.job, role=role, run=self.run),
            ATTEMPT_LABEL: str(self.attempt),
            EPOCH_LABEL: str(self.epoch),
        }

    @property
    def selector(self) -> dict[str, str]:
        """Of the driver: never the pod of another attempt, nor an executor."""
        if self.candidacy is not None:
            # Not all the labels: it may become an attempt.
            return {JOB_LABEL: self.job, CANDIDATE_DRIVER_LABEL: self.name}
        return self.labels("driver")

    def metadata(self, role: str) -> Manifest:
        return owned_metadata(
            self.name,
            namespace=self.namespace,
            job=self.job,
            job_uid=self.job_uid,
            labels=self.labels(role),
        )
