"""Who owns an object, and how it is found: every object of a job carries both."""

from __future__ import annotations

from typing import Any

from headrace.api import API_VERSION, GROUP

Manifest = dict[str, Any]

JOB_LABEL = f"{GROUP}/job"
RUN_LABEL = f"{GROUP}/run"
ATTEMPT_LABEL = f"{GROUP}/attempt"
EPOCH_LABEL = f"{GROUP}/epoch"
# Instead of the two before: of a driver that rehearses, and of its executors. One that takes over gets the
# two before as well, and the role of a driver.
CANDIDATE_LABEL = f"{GROUP}/candidate"
CANDIDATE_ROLE = "candidate"
# Of the driver of a candidate, its name: by this its Service knows it, whatever it becomes.
CANDIDATE_DRIVER_LABEL = f"{GROUP}/candidate-driver"
ROLE_LABEL = f"{GROUP}/role"
# Of the spec that a pod was made from: an edit may be what it waits for.
REVISION_LABEL = f"{GROUP}/revision"
GENERATION_LABEL = f"{GROUP}/generation"
# Uid of the job, on what it does not own.
LINEAGE_LABEL = f"{GROUP}/lineage"
# On pods that work on a savepoint: its name, its uid, and what they do.
SAVEPOINT_LABEL = f"{GROUP}/savepoint"
SAVEPOINT_UID_LABEL = f"{GROUP}/savepoint-uid"
TASK_LABEL = f"{GROUP}/task"
# Of what is done once for each value of an annotation: the digest of that value.
ASKED_LABEL = f"{GROUP}/asked"


def job_labels(job: str, *, role: str, run: int) -> dict[str, str]:
    return {**labels_of_job(job), RUN_LABEL: str(run), ROLE_LABEL: role}


def labels_of_job(job: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "headrace",
        "app.kubernetes.io/name": job,
        JOB_LABEL: job,
    }


def labels_of_activated(*, attempt: int, epoch: int) -> dict[str, str]:
    """What the driver of a candidate gets, before it is ordered to take over as that attempt."""
    return {ROLE_LABEL: "driver", ATTEMPT_LABEL: str(attempt), EPOCH_LABEL: str(epoch)}


def owned_metadata(name: str, *, namespace: str, job: str, job_uid: str, labels: dict[str, str]) -> Manifest:
    """Owned by the StreamJob, so that nothing outlives it."""
    return {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": "StreamJob",
                "name": job,
                "uid": job_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def savepoint_owner(name: str, uid: str) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "StreamSavepoint",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
