"""The template from which Spark makes the executors' pods: all of the manifest that has no Spark setting."""

from __future__ import annotations

from headrace.core.manifests.attempt import DriverAttempt, Manifest, Platform
from headrace.core.manifests.kafka_files import kafka_mounts, kafka_volumes
from headrace.core.manifests.keeper_pod import trust_maker
from headrace.core.manifests.places import SPARK_LOCAL
from headrace.core.manifests.pod import container, patched, pod_spec, scratch, without_empty
from headrace.core.manifests.requirements import (
    python_path,
    requirements_installer,
    requirements_mounts,
    requirements_volumes,
)
from headrace.core.manifests.s3_keys import keys_mounts, keys_volumes
from headrace.core.manifests.sizes import extra_resources
from headrace.core.manifests.spark_conf import EXECUTOR_CONTAINER
from headrace.core.manifests.trust import trust_env, trust_mounts, trust_volumes

# Time to hand over blocks when a node is drained or the set is scaled down.
_GRACE_SECONDS = 60
_LOCAL_DIRECTORIES = "spark-local-dir-"
LOCAL_DIRECTORY = f"{_LOCAL_DIRECTORIES}1"


def executor_template(attempt: DriverAttempt, platform: Platform) -> Manifest:
    settings = attempt.spec.executors
    before = [
        *trust_maker(attempt.spec, settings, platform),
        *requirements_installer(attempt, settings, platform),
    ]
    # Spark makes an unbounded one unless there is one of this name.
    own_directory = not any(one.name.startswith(_LOCAL_DIRECTORIES) for one in settings.volume_mounts)
    more = {"resources": without_empty(extra_resources(settings))}
    template: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": without_empty(
            {
                "labels": {**settings.labels, **attempt.labels("executor")},
                "annotations": settings.annotations,
            }
        ),
        "spec": {
            **pod_spec(
                settings,
                container(
                    settings,
                    name=EXECUTOR_CONTAINER,
                    env=[*python_path(attempt), *trust_env(attempt.spec)],
                    mounts=[
                        *trust_mounts(attempt.spec),
                        *requirements_mounts(attempt),
                        *kafka_mounts(attempt.spec.kafka),
                        *keys_mounts(attempt.spec),
                        *([{"name": LOCAL_DIRECTORY, "mountPath": SPARK_LOCAL}] if own_directory else []),
                    ],
                    more=more,
                ),
                volumes=[
                    *trust_volumes(attempt.spec),
                    *requirements_volumes(attempt),
                    *kafka_volumes(attempt.spec.kafka),
                    *keys_volumes(attempt.spec),
                    *([scratch(LOCAL_DIRECTORY, settings)] if own_directory else []),
                ],
            ),
            **without_empty({"initContainers": before}),
            # Only the driver speaks to the API server.
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": _GRACE_SECONDS,
        },
    }
    return patched(template, settings)
