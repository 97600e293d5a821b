"""The driver pod: an init container that brings the harness, and the job's own image that runs it."""

from __future__ import annotations

from headrace.core.manifests.attempt import DriverAttempt, Manifest, Platform
from headrace.core.manifests.code import fetched_files
from headrace.core.manifests.config_map import code_key
from headrace.core.manifests.kafka_files import kafka_mounts, kafka_volumes
from headrace.core.manifests.keeper_pod import FETCHED_VOLUME, code_fetch, store_check, trust_maker
from headrace.core.manifests.places import (
    AGENT_PORT,
    BLOCK_MANAGER_PORT,
    CARRIED,
    CODE,
    DRIVER_PORT,
    FETCHED,
    RUN_FILE,
    RUN_FILES,
    SPARK_LOCAL,
    TOKEN,
    UI_PORT,
)
from headrace.core.manifests.pod import CONTAINER_SECURITY, container, patched, pod_spec, without_empty
from headrace.core.manifests.requirements import (
    python_path,
    requirements_installer,
    requirements_mounts,
    requirements_volumes,
)
from headrace.core.manifests.run_file import TERMINATION_MESSAGE
from headrace.core.manifests.s3_keys import keys_mounts, keys_volumes
from headrace.core.manifests.sizes import resources
from headrace.core.manifests.trust import trust_env, trust_mounts, trust_volumes

# After its drain the harness needs a moment to halt the JVM and to write its last words.
_SECONDS_AFTER_DRAIN = 30


def driver_pod(attempt: DriverAttempt, platform: Platform) -> Manifest:
    settings = attempt.spec.driver
    metadata = attempt.metadata("driver")
    metadata["labels"] = {**settings.labels, **metadata["labels"]}
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": without_empty({**metadata, "annotations": settings.annotations}),
        "spec": without_empty(
            {
                **pod_spec(settings, _driver(attempt, platform), volumes=_volumes(attempt)),
                "initContainers": _before_the_driver(attempt, platform),
                "serviceAccountName": settings.service_account or platform.service_account,
                "imagePullSecrets": [{"name": secret.name} for secret in attempt.spec.image_pull_secrets],
                # A restart is an attempt of its own, with a claim and an epoch of its own.
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": int(attempt.spec.drain_timeout.seconds)
                + _SECONDS_AFTER_DRAIN,
            }
        ),
    }
    return patched(pod, settings)


def _driver(attempt: DriverAttempt, platform: Platform) -> Manifest:
    ports = {"driver": DRIVER_PORT, "block-manager": BLOCK_MANAGER_PORT, "agent": AGENT_PORT, "ui": UI_PORT}
    mounts: list[Manifest] = [
        {"name": "headrace", "mountPath": CARRIED, "readOnly": True},
        {"name": "run", "mountPath": RUN_FILES, "readOnly": True},
        {"name": "token", "mountPath": TOKEN, "readOnly": True},
        *kafka_mounts(attempt.spec.kafka),
        *keys_mounts(attempt.spec),
    ]
    mounts += [*trust_mounts(attempt.spec), *requirements_mounts(attempt)]
    if fetched_files(attempt.spec.application):
        mounts.append({"name": FETCHED_VOLUME, "mountPath": FETCHED, "readOnly": True})
    if attempt.code:
        mounts.append({"name": "code", "mountPath": CODE, "readOnly": True})
    return container(
        attempt.spec.driver,
        name="driver",
        env=[
            *python_path(attempt, CARRIED),
            {"name": "SPARK_LOCAL_DIRS", "value": SPARK_LOCAL},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
            *trust_env(attempt.spec),
        ],
        mounts=mounts,
        more={
            "image": attempt.image_on(platform),
            "imagePullPolicy": attempt.spec.image_pull_policy or platform.image_pull_policy,
            # Python is the main process, so the signal to drain arrives.
            "command": ["python3", "-m", "headrace_jobs.harness", "--run-file", f"{RUN_FILES}/{RUN_FILE}"],
            "ports": [{"name": name, "containerPort": port} for name, port in ports.items()],
            "resources": resources(attempt.spec.driver),
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": "agent"}, "periodSeconds": 5},
            "terminationMessagePath": TERMINATION_MESSAGE,
            # What the harness could not say itself (killed while starting) is in the log's last lines.
            "terminationMessagePolicy": "FallbackToLogsOnError",
        },
    )


def _before_the_driver(attempt: DriverAttempt, platform: Platform) -> list[Manifest]:
    check = [store_check(attempt, platform)] if attempt.check_store else []
    return [
        *check,
        *code_fetch(attempt, platform),
        *trust_maker(attempt.spec, attempt.spec.driver, platform),
        *requirements_installer(attempt, attempt.spec.driver, platform),
        _carrier(platform),
    ]


def _carrier(platform: Platform) -> Manifest:
    return without_empty(
        {
            "name": "headrace",
            "image": platform.headrace_image,
            "imagePullPolicy": platform.image_pull_policy,
            "command": ["/bin/sh", "/opt/headrace/carry.sh", "/carried"],
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
            "securityContext": CONTAINER_SECURITY,
            "volumeMounts": [{"name": "headrace", "mountPath": "/carried"}],
        }
    )


def _volumes(attempt: DriverAttempt) -> list[Manifest]:
    volumes: list[Manifest] = [
        {"name": "headrace", "emptyDir": {}},
        {"name": "run", "configMap": {"name": attempt.name}},
        {"name": "token", "secret": {"secretName": attempt.name}},
        *kafka_volumes(attempt.spec.kafka),
        *keys_volumes(attempt.spec),
    ]
    volumes += [*trust_volumes(attempt.spec), *requirements_volumes(attempt)]
    if fetched_files(attempt.spec.application):
        volumes.append({"name": FETCHED_VOLUME, "emptyDir": {}})
    if attempt.code:
        files = [{"key": code_key(name), "path": name} for name in attempt.code]
        volumes.append({"name": "code", "configMap": {"name": attempt.name, "items": files}})
    return volumes
