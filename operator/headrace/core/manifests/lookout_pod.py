"""The lookout: a small pod that looks for work while the job sleeps.

It is the driver's pod with another program in it, so it reaches the sources as the driver does: with the
job's own image and connectors, its variables, its volumes, its Secrets, its ServiceAccount. It stays for as
long as the job sleeps: a JVM that is started anew for each look would cost more than one that waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.api import GROUP
from headrace.core.manifests.attempt import DriverAttempt, Manifest, Platform
from headrace.core.manifests.driver_pod import driver_pod
from headrace.core.manifests.keeper_pod import TRY_LABEL
from headrace.core.manifests.ownership import job_labels
from headrace.core.manifests.places import RUN_FILE, RUN_FILES
from headrace.core.manifests.pod import without_empty
from headrace.core.manifests.requirements import INSTALLER
from headrace.core.manifests.run_file import TERMINATION_MESSAGE

LOOKOUT_ROLE = "lookout"
# A label, because a pass sees no annotations of pods.
EVERY_LABEL = f"{GROUP}/look-every-seconds"
_CONTAINER = "driver"
# It has nothing to finish.
_GRACE_SECONDS = 1
_RESOURCES: Manifest = {
    "requests": {"cpu": "20m", "memory": "384Mi"},
    "limits": {"memory": "512Mi"},
}
# Nobody asks a lookout anything.
_TOKEN = "token"  # noqa: S105 - the name of a volume
_DRIVERS_OWN = ("ports", "readinessProbe", "livenessProbe", "startupProbe", "lifecycle")


@dataclass(frozen=True, kw_only=True)
class Lookout:
    """Looks for work where the last attempt left off."""

    attempt: DriverAttempt
    number: int
    every_seconds: float

    @property
    def name(self) -> str:
        return f"{self.attempt.job}-lookout-{self.number}"


def lookout_pod(lookout: Lookout, platform: Platform) -> Manifest:
    attempt = lookout.attempt
    pod = driver_pod(replace(attempt, check_store=False), platform)
    metadata, spec = pod["metadata"], pod["spec"]
    own = {
        **job_labels(attempt.job, role=LOOKOUT_ROLE, run=attempt.run),
        TRY_LABEL: str(lookout.number),
        EVERY_LABEL: f"{lookout.every_seconds:g}",
    }
    labels = {key: value for key, value in metadata["labels"].items() if key not in attempt.labels("driver")}
    return {
        **pod,
        "metadata": {
            **metadata,
            "name": lookout.name,
            "labels": {**labels, **own},
        },
        "spec": {
            **spec,
            "volumes": [one for one in spec.get("volumes") or () if one["name"] != _TOKEN],
            "initContainers": [one for one in spec.get("initContainers") or () if one["name"] != INSTALLER],
            "containers": [_looking(one, lookout) for one in spec["containers"]],
            "terminationGracePeriodSeconds": _GRACE_SECONDS,
        },
    }


def _looking(container: Manifest, lookout: Lookout) -> Manifest:
    """Containers that `driver.patch` has added stay as they are."""
    if container["name"] != _CONTAINER:
        return container
    kept = {key: value for key, value in container.items() if key not in _DRIVERS_OWN}
    return without_empty(
        {
            **kept,
            "volumeMounts": [one for one in kept.get("volumeMounts") or () if one["name"] != _TOKEN],
            "command": [
                "python3",
                "-m",
                "headrace_jobs.lookout",
                f"--run-file={RUN_FILES}/{RUN_FILE}",
                f"--every={lookout.every_seconds:g}",
                f"--result={TERMINATION_MESSAGE}",
            ],
            "resources": _RESOURCES,
        }
    )
