"""The StreamSavepoint that Headrace makes by itself. Owned by nobody: it is to outlive its job."""

from __future__ import annotations

from headrace.api import API_VERSION
from headrace.api.lifecycle import Savepoints
from headrace.core.manifests.ownership import Manifest, labels_of_job
from headrace.core.savepoints import Cause


def stream_savepoint(name: str, *, namespace: str, job: str, cause: Cause, policy: Savepoints) -> Manifest:
    rate = {"maxCopyRate": policy.max_copy_rate} if policy.max_copy_rate is not None else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "StreamSavepoint",
        "metadata": {"name": name, "namespace": namespace, "labels": labels_of_job(job)},
        "spec": {"job": {"name": job}, "cause": cause, "verify": policy.verify, **rate},
    }
