"""Spark's settings for a driver and executors on Kubernetes."""

from __future__ import annotations

from headrace.api.storage import S3
from headrace.core.manifests.attempt import DriverAttempt, Platform
from headrace.core.manifests.code import jars
from headrace.core.manifests.event_log import event_log_conf
from headrace.core.manifests.places import (
    BLOCK_MANAGER_PORT,
    DRIVER_PORT,
    EXECUTOR_TEMPLATE,
    RUN_FILES,
    S3_CA,
    S3_KEYS,
    UI_PORT,
)
from headrace.core.manifests.sizes import memory_shares

EXECUTOR_CONTAINER = "executor"

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_DEFAULT_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_KEYS_FROM_FILES = "dev.headrace.FileCredentialsProvider"


def spark_conf(attempt: DriverAttempt, platform: Platform) -> dict[str, str]:
    """The user's settings come first: they own none of the rest (the API refuses owned keys)."""
    return {
        **attempt.spec.spark_conf,
        **_driver(attempt, platform),
        **_executors(attempt, platform),
        **_state(attempt),
        **_store(attempt.spec.checkpoint.s3 or S3(), attempt.store),
        **_jars(attempt),
        **event_log_conf(attempt.spec, store=attempt.store, run=attempt.run),
    }


def _driver(attempt: DriverAttempt, platform: Platform) -> dict[str, str]:
    return {
        "spark.master": f"k8s://{platform.api_server}",
        "spark.submit.deployMode": "client",
        "spark.app.id": attempt.application_id,
        "spark.driver.memory": f"{memory_shares(attempt.spec.driver).heap_mib}m",
        # Executors find the driver by its Service; it listens on every address of its pod.
        "spark.driver.host": f"{attempt.name}.{attempt.namespace}.svc",
        "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104
        # Spark 4.3 would hand them the address it listens on instead, which is none to call.
        "spark.kubernetes.executor.useDriverPodIP": "false",
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.ui.port": str(UI_PORT),
        "spark.kubernetes.namespace": attempt.namespace,
        # Spark makes this pod the owner of the executors' StatefulSet.
        "spark.kubernetes.driver.pod.name": attempt.name,
        "spark.kubernetes.authenticate.caCertFile": f"{_SERVICE_ACCOUNT}/ca.crt",
        "spark.kubernetes.authenticate.oauthTokenFile": f"{_SERVICE_ACCOUNT}/token",
    }


def _executors(attempt: DriverAttempt, platform: Platform) -> dict[str, str]:
    settings = attempt.spec.executors
    memory = memory_shares(settings)
    account = settings.service_account or attempt.spec.driver.service_account or platform.service_account
    conf = {
        # A StatefulSet, so that the operator scales a running job by its replicas.
        "spark.kubernetes.allocation.pods.allocator": "statefulset",
        "spark.executor.instances": str(settings.count),
        "spark.executor.cores": str(settings.cores),
        "spark.executor.memory": f"{memory.heap_mib}m",
        "spark.executor.memoryOverhead": f"{memory.overhead_mib}m",
        "spark.kubernetes.executor.request.cores": settings.resources.requests.get(
            "cpu", str(settings.cores)
        ),
        "spark.kubernetes.container.image": attempt.image_on(platform),
        "spark.kubernetes.authenticate.executor.serviceAccountName": account,
        "spark.kubernetes.executor.podTemplateFile": f"{RUN_FILES}/{EXECUTOR_TEMPLATE}",
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        # An executor that leaves hands over its blocks first: scaling down costs no batch.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.kubernetes.decommission.script": "/opt/decom.sh",
    }
    if cpu_limit := settings.resources.limits.get("cpu"):
        conf["spark.kubernetes.executor.limit.cores"] = cpu_limit
    if policy := attempt.spec.image_pull_policy or platform.image_pull_policy:
        conf["spark.kubernetes.container.image.pullPolicy"] = policy
    if secrets := attempt.spec.image_pull_secrets:
        conf["spark.kubernetes.container.image.pullSecrets"] = ",".join(secret.name for secret in secrets)
    return conf


def _state(attempt: DriverAttempt) -> dict[str, str]:
    bound = attempt.spec.state.memory
    overhead_mib = memory_shares(attempt.spec.executors).overhead_mib
    rocksdb_mib = bound.bytes // 2**20 if bound is not None else overhead_mib // 2
    return {
        "spark.sql.shuffle.partitions": str(attempt.spec.state.partitions),
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": str(rocksdb_mib),
    }


def _store(s3: S3, store: str) -> dict[str, str]:
    """How Hadoop's S3 client reaches the store. The keys themselves come as files, never from here."""
    if not store.startswith("s3://"):
        return {}
    path_style = s3.path_style if s3.path_style is not None else s3.endpoint is not None
    conf = {
        "aws.credentials.provider": _DEFAULT_CHAIN if s3.credentials is None else _KEYS_FROM_FILES,
        # Else S3A looks for our provider only where it was loaded from itself: among Spark's own jars.
        "classloader.isolation": None if s3.credentials is None else "false",
        "path.style.access": str(path_style).lower(),
        "endpoint": s3.endpoint,
        # A custom endpoint has no region to be found out, but requests are signed with one.
        "endpoint.region": s3.region or ("us-east-1" if s3.endpoint else None),
    }
    if s3.encryption is not None:
        conf["encryption.algorithm"] = {"SSE-S3": "AES256", "SSE-KMS": "SSE-KMS"}[s3.encryption.type]
        conf["encryption.key"] = s3.encryption.kms_key_id
    files = {
        "credentials.file": S3_KEYS if s3.credentials is not None else None,
        # For those who reach the store without the JVM: the JVM's own trust comes by environment.
        "ca.file": S3_CA if s3.ca is not None else None,
    }
    named = {f"fs.s3a.{key}": value for key, value in conf.items()} | {
        f"headrace.s3.{key}": value for key, value in files.items()
    }
    return {f"spark.hadoop.{key}": value for key, value in named.items() if value is not None}


def _jars(attempt: DriverAttempt) -> dict[str, str]:
    paths = [jar.path for jar in jars(attempt.spec.application)]
    return {"spark.jars": ",".join(paths)} if paths else {}
