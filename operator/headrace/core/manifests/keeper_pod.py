"""Store work, done by the job's own pods under the job's ServiceAccount and credentials.

Two forms of the same program, `python -m headrace_jobs.keeper`: a container that looks into the store before
the first driver starts (or brings its code from S3, or makes the JVM's trust store), and a pod of its own
that copies the state of one run into the path of the next, removes the checkpoints of a deleted job, or
works on a savepoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headrace.api import GROUP, StreamJobSpec
from headrace.api.pods import PodSettings
from headrace.api.storage import S3
from headrace.core.actions import RestoreRun, SeedRun
from headrace.core.manifests.attempt import DriverAttempt, Platform
from headrace.core.manifests.code import fetched_files
from headrace.core.manifests.ownership import (
    ASKED_LABEL,
    GENERATION_LABEL,
    LINEAGE_LABEL,
    REVISION_LABEL,
    ROLE_LABEL,
    SAVEPOINT_LABEL,
    SAVEPOINT_UID_LABEL,
    TASK_LABEL,
    Manifest,
    job_labels,
    labels_of_job,
    owned_metadata,
    savepoint_owner,
)
from headrace.core.manifests.places import FETCHED, S3_CA, S3_KEYS
from headrace.core.manifests.pod import container, pod_spec, without_empty
from headrace.core.manifests.s3_keys import keys_mounts, keys_volumes
from headrace.core.manifests.trust import TRUST_STORE, ca_mounts, ca_volumes, has_ca, trust_mounts

KEEPER_ROLE = "keeper"
DELETION_ROLE = "deletion"
SAVEPOINT_ROLE = "savepoint"
COLLECTOR_ROLE = "collector"
KEEPER_CONTAINER = "keeper"
STORE_CHECK = "store"
CODE_FETCH = "code"
FETCHED_VOLUME = "fetched"
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
    """One try to copy the state of a run, or of a savepoint, into the path of another run."""

    namespace: str
    job: str
    job_uid: str
    spec: StreamJobSpec
    lineages: str
    """The place of all lineages of this name in the store: <location>/<namespace>/<name>."""

    revision: str
    """Of the run that it is made for."""

    action: SeedRun | RestoreRun
    number: int
    """Counts the tries, from 1."""

    @property
    def name(self) -> str:
        return f"{self.job}-r{self.action.to_run}-seed-{self.number}"


def seeding_pod(seeding: Seeding, platform: Platform) -> Manifest:
    labels = {
        **job_labels(seeding.job, role=KEEPER_ROLE, run=seeding.action.to_run),
        TRY_LABEL: str(seeding.number),
        REVISION_LABEL: seeding.revision,
    }
    metadata = owned_metadata(
        seeding.name,
        namespace=seeding.namespace,
        job=seeding.job,
        job_uid=seeding.job_uid,
        labels={**seeding.spec.driver.labels, **labels},
    )
    return _pod(metadata, seeding.spec, platform, [*_seeding_command(seeding), *_s3_flags(seeding.spec)])


def _seeding_command(seeding: Seeding) -> list[str]:
    own = seeding.job_uid
    where = [f"--store={seeding.lineages}", f"--to={own}/run-{seeding.action.to_run}"]
    match seeding.action:
        case SeedRun(handover=handover, code_of=code_of) as action:
            return [
                "seed" if handover is None else "rollback",
                *where,
                f"--from={action.from_uid or own}/run-{action.from_run}",
                *([f"--incumbent={own}/run-{handover}"] if handover is not None else []),
                *(["--rewind"] if action.rewind else []),
                *([f"--code-of={own}/run-{code_of}"] if code_of is not None else []),
            ]
        case RestoreRun() as action:
            named = [f"--query={action.query}"] if action.query is not None else []
            return [
                "restore",
                *where,
                f"--from={action.path}",
                f"--lineage={action.lineage}",
                f"--job={seeding.namespace}/{seeding.job}",
                *named,
            ]


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """One try to remove the checkpoints of a job."""

    namespace: str
    job: str
    job_uid: str
    spec: StreamJobSpec
    lineages: str
    """The place of all lineages of this name in the store: <location>/<namespace>/<name>."""

    generation: int
    """Of the spec that it is made from."""

    number: int
    """Counts the tries, from 1."""

    @property
    def name(self) -> str:
        return f"{self.job}-{self.job_uid[:8]}-delete-{self.number}"


def deletion_pod(deletion: Deletion, platform: Platform) -> Manifest:
    """Owned by nobody: where a job is deleted in the foreground, the garbage collector takes what it owns."""
    spec = deletion.spec
    labels = {
        **labels_of_job(deletion.job),
        ROLE_LABEL: DELETION_ROLE,
        LINEAGE_LABEL: deletion.job_uid,
        TRY_LABEL: str(deletion.number),
        GENERATION_LABEL: str(deletion.generation),
    }
    metadata = {
        "name": deletion.name,
        "namespace": deletion.namespace,
        "labels": {**spec.driver.labels, **labels},
    }
    command = [
        "delete",
        f"--store={deletion.lineages}",
        f"--lineage={deletion.job_uid}",
        *_s3_flags(spec),
    ]
    pod = _pod(metadata, spec, platform, command)
    # Its main process does not hear a polite signal. Retained after all, the checkpoints must not wait.
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    return pod


@dataclass(frozen=True, kw_only=True)
class SavepointWork:
    """One try to take, to check or to remove a savepoint."""

    namespace: str
    job: str
    savepoint: str
    savepoint_uid: str
    spec: StreamJobSpec
    """Of the job, under whose rights it is done."""

    task: Literal["take", "verify", "check", "discard"]
    arguments: tuple[str, ...]
    """What the keeper is to do, without how to reach the store."""

    made_from: str
    """Tells apart the specs that it may be made from."""

    number: int
    """Counts the tries, from 1."""

    asked: str | None = None
    """Tells apart what is done once for each time that it is asked."""

    limit_seconds: int | None = None
    """The kubelet ends it after this time, also where nobody looks."""

    @property
    def name(self) -> str:
        task = self.task if self.asked is None else f"{self.task}-{self.asked}"
        return f"{self.savepoint}-{self.savepoint_uid[:8]}-{task}-{self.number}"


def savepoint_pod(work: SavepointWork, platform: Platform) -> Manifest:
    """What removes a copy is owned by nobody: deleted in the foreground, a savepoint loses what it owns."""
    labels = {
        **labels_of_job(work.job),
        ROLE_LABEL: SAVEPOINT_ROLE,
        SAVEPOINT_LABEL: work.savepoint,
        SAVEPOINT_UID_LABEL: work.savepoint_uid,
        TASK_LABEL: work.task,
        TRY_LABEL: str(work.number),
        GENERATION_LABEL: work.made_from,
        **({ASKED_LABEL: work.asked} if work.asked is not None else {}),
    }
    owner = savepoint_owner(work.savepoint, work.savepoint_uid) if work.task != "discard" else None
    metadata = {
        "name": work.name,
        "namespace": work.namespace,
        "labels": {**work.spec.driver.labels, **labels},
        **({"ownerReferences": [owner]} if owner is not None else {}),
    }
    pod = _pod(metadata, work.spec, platform, [*work.arguments, *_s3_flags(work.spec)])
    # Its main process does not hear a polite signal, and what it leaves half done harms nobody.
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    if work.limit_seconds is not None:
        pod["spec"]["activeDeadlineSeconds"] = work.limit_seconds
    return pod


@dataclass(frozen=True, kw_only=True)
class OrphanHunt:
    """A look for what savepoints of a job have left behind in the store, or for savepoints."""

    namespace: str
    job: str
    job_uid: str
    spec: StreamJobSpec
    place: str
    asked: str
    mode: Literal["dry-run", "remove", "list"]
    known: tuple[str, ...] = ()
    """Directories of the savepoints that somebody names."""

    @property
    def name(self) -> str:
        return f"{self.job}-collect-{self.asked}"


def collector_pod(hunt: OrphanHunt, platform: Platform) -> Manifest:
    labels = {**labels_of_job(hunt.job), ROLE_LABEL: COLLECTOR_ROLE, TASK_LABEL: hunt.asked}
    metadata = owned_metadata(
        hunt.name,
        namespace=hunt.namespace,
        job=hunt.job,
        job_uid=hunt.job_uid,
        labels={**hunt.spec.driver.labels, **labels},
    )
    return _pod(metadata, hunt.spec, platform, [*_hunting_command(hunt), *_s3_flags(hunt.spec)])


def _hunting_command(hunt: OrphanHunt) -> list[str]:
    if hunt.mode == "list":
        return ["savepoints", f"--store={hunt.place}", "--everywhere", "--fitting"]
    flags = ["--dry-run"] if hunt.mode == "dry-run" else []
    return ["collect", f"--store={hunt.place}", *flags, *(f"--known={one}" for one in hunt.known)]


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
    return _keeper(attempt.spec, platform, STORE_CHECK, command, mounts=keys_mounts(attempt.spec))


def code_fetch(attempt: DriverAttempt, platform: Platform) -> list[Manifest]:
    """Brings what the application has in S3, as the run's first attempt found it; none where it has none."""
    files = fetched_files(attempt.spec.application)
    if not files:
        return []
    lineages, _, own = attempt.store.rpartition("/")
    sources = [part for each in files for part in ("--source", each.field, each.place or "", each.given)]
    command = [
        "fetch",
        f"--store={lineages}",
        f"--lineage={own}",
        f"--run={attempt.run}",
        # What a candidate runs may be edited once more before the run begins.
        *([f"--candidate={attempt.candidacy.number}"] if attempt.candidacy is not None else []),
        f"--to={FETCHED}",
        *sources,
        *_s3_flags(attempt.spec),
    ]
    mounts = [*keys_mounts(attempt.spec), {"name": FETCHED_VOLUME, "mountPath": FETCHED}]
    return [_keeper(attempt.spec, platform, CODE_FETCH, command, mounts=mounts)]


def trust_maker(spec: StreamJobSpec, settings: PodSettings, platform: Platform) -> list[Manifest]:
    """Makes the trust store of the pod's JVM; none where Java's own list will do."""
    if not has_ca(spec):
        return []
    command = ["trust", f"--to={TRUST_STORE}", f"--s3-ca={S3_CA}"]
    mounts = trust_mounts(spec, read_only=False)
    return [_keeper(spec, platform, "trust", command, mounts=mounts, settings=settings)]


def _pod(metadata: Manifest, spec: StreamJobSpec, platform: Platform, command: list[str]) -> Manifest:
    settings = spec.driver
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": without_empty({**metadata, "annotations": settings.annotations}),
        "spec": without_empty(
            {
                **pod_spec(
                    settings,
                    _keeper(spec, platform, KEEPER_CONTAINER, command, mounts=keys_mounts(spec)),
                    volumes=[*ca_volumes(spec), *keys_volumes(spec, optional=True)],
                ),
                "serviceAccountName": settings.service_account or platform.service_account,
                "imagePullSecrets": [{"name": secret.name} for secret in spec.image_pull_secrets],
                "restartPolicy": "Never",
            }
        ),
    }


def _keeper(
    spec: StreamJobSpec,
    platform: Platform,
    name: str,
    command: list[str],
    *,
    mounts: list[Manifest],
    settings: PodSettings | None = None,
) -> Manifest:
    """`settings` are those of the pod that it is a container of; mostly the driver's."""
    return container(
        settings or spec.driver,
        name=name,
        env=[{"name": "PYTHONPATH", "value": _CARRIED_IN_IMAGE}],
        mounts=[*ca_mounts(spec), *mounts],
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
    encryption, kms_key = (s3.encryption.type, s3.encryption.kms_key_id) if s3.encryption else (None, None)
    flags = {
        "--s3-endpoint": s3.endpoint,
        "--s3-region": s3.region,
        "--s3-encryption": encryption,
        "--s3-kms-key": kms_key,
    }
    given = [f"{flag}={value}" for flag, value in flags.items() if value is not None]
    switches = [
        *(["--s3-path-style"] if path_style else []),
        *([f"--s3-ca={S3_CA}"] if s3.ca is not None else []),
        *([f"--s3-credentials={S3_KEYS}"] if s3.credentials is not None else []),
    ]
    return [*given, *switches]
