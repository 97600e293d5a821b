"""Store work, done by the job's own pods under the job's ServiceAccount and credentials.

Two forms of the same program, `python -m headrace_jobs.keeper`: a container that looks into the store before
the first driver starts, and a pod of its own that copies the state of one run into the path of the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api import GROUP, StreamJobSpec
from headrace.api.storage import S3
from headrace.core.manifests.attempt import DriverAttempt, Platform
from headrace.core.manifests.ownership import Manifest, job_labels, owned_metadata
from headrace.core.manifests.pod import container, pod_spec, without_empty

KEEPER_ROLE = "keeper"
KEEPER_CONTAINER = "keeper"
STORE_CHECK = "store"
TRY_LABEL = f"{GROUP}/try"

# In Headrace's own image, where the init container copies from.
_CARRIED_IN_IMAGE = "/opt/headrace/carried"
_RESULT = "/dev/termination-log"
_RESOURCES: Manifest = {
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"memory": "512Mi"},
}


@dataclass(frozen=True, kw_only=True)
class Seeding:
    """One try to copy the state of a run into the path of another."""

    namespace: str
    job: str
    job_uid: str
    spec: StreamJobSpec
    lineages: str
    """The place of all lineages of this name in the store: <location>/<namespace>/<name>."""

    from_uid: str
    from_run: int
    to_run: int
    number: int
    """Counts the tries, from 1."""

    @property
    def name(self) -> str:
        return f"{self.job}-r{self.to_run}-seed-{self.number}"


def seeding_pod(seeding: Seeding, platform: Platform) -> Manifest:
    settings = seeding.spec.driver
    labels = {**job_labels(seeding.job, role=KEEPER_ROLE, run=seeding.to_run), TRY_LABEL: str(seeding.number)}
    command = [
        "seed",
        f"--store={seeding.lineages}",
        f"--from={seeding.from_uid}/run-{seeding.from_run}",
        f"--to={seeding.job_uid}/run-{seeding.to_run}",
        *_s3_flags(seeding.spec),
    ]
    metadata = owned_metadata(
        seeding.name,
        namespace=seeding.namespace,
        job=seeding.job,
        job_uid=seeding.job_uid,
        labels={**settings.labels, **labels},
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": without_empty({**metadata, "annotations": settings.annotations}),
        "spec": without_empty(
            {
                **pod_spec(settings, _keeper(seeding.spec, platform, KEEPER_CONTAINER, command), volumes=[]),
                "serviceAccountName": settings.service_account or platform.service_account,
                "imagePullSecrets": [{"name": secret.name} for secret in seeding.spec.image_pull_secrets],
                "restartPolicy": "Never",
            }
        ),
    }


def store_check(attempt: DriverAttempt, platform: Platform) -> Manifest:
    """Ends in a second where the store cannot be used, long before Spark would have found out."""
    lineages, _, own = attempt.store.rpartition("/")
    command = [
        "check",
        f"--store={lineages}",
        f"--lineage={own}",
        f"--run={attempt.run}",
        *_s3_flags(attempt.spec),
    ]
    return _keeper(attempt.spec, platform, STORE_CHECK, command)


def _keeper(spec: StreamJobSpec, platform: Platform, name: str, command: list[str]) -> Manifest:
    return container(
        spec,
        spec.driver,
        name=name,
        env=[{"name": "PYTHONPATH", "value": _CARRIED_IN_IMAGE}],
        mounts=[],
        more={
            "image": platform.headrace_image,
            "imagePullPolicy": platform.image_pull_policy,
            "command": ["python3", "-m", "headrace_jobs.keeper", *command, f"--result={_RESULT}"],
            "resources": _RESOURCES,
            "terminationMessagePath": _RESULT,
            "terminationMessagePolicy": "FallbackToLogsOnError",
        },
    )


def _s3_flags(spec: StreamJobSpec) -> list[str]:
    s3 = spec.checkpoint.s3 or S3()
    path_style = s3.path_style if s3.path_style is not None else s3.endpoint is not None
    kms = s3.encryption.kms_key_id if s3.encryption is not None else None
    flags = {"--s3-endpoint": s3.endpoint, "--s3-region": s3.region, "--s3-kms-key": kms}
    given = [f"{flag}={value}" for flag, value in flags.items() if value is not None]
    return [*given, *(["--s3-path-style"] if path_style else [])]
