"""The PodDisruptionBudget of a job whose driver must not be evicted."""

from __future__ import annotations

from headrace.core.manifests.ownership import JOB_LABEL, ROLE_LABEL, Manifest, owned_metadata


def disruption_budget_name(job: str) -> str:
    return f"{job}-driver"


def disruption_budget(*, namespace: str, job: str, job_uid: str) -> Manifest:
    """Of the job, not of an attempt: it stays while attempts come and go."""
    labels = {"app.kubernetes.io/managed-by": "headrace", "app.kubernetes.io/name": job, JOB_LABEL: job}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": owned_metadata(
            disruption_budget_name(job), namespace=namespace, job=job, job_uid=job_uid, labels=labels
        ),
        "spec": {
            # There is one driver at a time; those that ended do not count.
            "minAvailable": 1,
            "selector": {"matchLabels": {JOB_LABEL: job, ROLE_LABEL: "driver"}},
            # One that is not even ready protects nothing, and must not hold a node for ever.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
