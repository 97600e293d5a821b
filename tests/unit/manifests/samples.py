"""Attempts to build manifests from."""

from typing import Any

from headrace.api import StreamJobSpec
from headrace.core.manifests import DriverAttempt, Platform

PLATFORM = Platform(
    job_image="registry.example.com/spark:4.2.1", headrace_image="registry.example.com/headrace:1"
)


def an_attempt(
    *,
    code: dict[str, str] | None = None,
    image: str | None = None,
    check_store: bool = False,
    **spec: Any,
) -> DriverAttempt:
    wanted = {
        "application": {"file": "clicks.py", "args": ["--window", "1m"]},
        "checkpoint": {"location": "s3://acme-streams/checkpoints"},
        **spec,
    }
    return DriverAttempt(
        namespace="shop",
        job="clicks",
        job_uid="6a0c9b7e-0000-4000-8000-000000000001",
        spec=StreamJobSpec.parse(wanted),
        run=3,
        attempt=2,
        epoch=7,
        uid="6a0c9b7e-r3-a2",
        store="s3://acme-streams/checkpoints/shop/clicks/6a0c9b7e-0000-4000-8000-000000000001",
        image=image,
        code=code or {},
        check_store=check_store,
    )


FULL: dict[str, Any] = {
    "image": "acme/clicks:1.4.2",
    "imagePullPolicy": "IfNotPresent",
    "imagePullSecrets": [{"name": "acme-registry"}],
    "sparkConf": {"spark.sql.session.timeZone": "UTC"},
    "checkpoint": {
        "location": "s3://acme-streams/checkpoints",
        "s3": {
            "endpoint": "https://s3.acme.example",
            "encryption": {"type": "SSE-KMS", "kmsKeyId": "alias/streams"},
            "credentials": {"secret": "s3-keys"},
        },
    },
    "state": {"partitions": 8},
    "kafka": {
        "bootstrapServers": "kafka:9093",
        "protocol": "SASL_SSL",
        "sasl": {"secret": "kafka-user", "username": "user"},
        "tls": {"ca": {"configMap": "private-ca"}, "client": {"secret": "clicks-tls"}},
    },
    "driver": {
        "cores": 2,
        "memory": "3Gi",
        "serviceAccount": "clicks",
        "resources": {"requests": {"cpu": "500m"}},
        "labels": {"team": "shop", "headrace.dev/role": "not-yours"},
        "annotations": {"example.com/owner": "shop"},
        "env": [{"name": "LOG_LEVEL", "value": "debug"}],
        "envFrom": [{"secretRef": {"name": "clicks-env"}}],
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
        "nodeSelector": {"pool": "streams"},
        "tolerations": [{"key": "streams", "operator": "Exists"}],
        "patch": {"spec": {"hostname": "clicks-driver"}},
    },
    "executors": {
        "count": 2,
        "cores": 2,
        "memory": "4Gi",
        "memoryOverhead": "1Gi",
        "resources": {"limits": {"cpu": "3", "ephemeral-storage": "20Gi"}},
        "securityContext": {"readOnlyRootFilesystem": False},
        "priorityClassName": "streams",
    },
    "trigger": {"interval": "10s"},
    "drainTimeout": "5m",
    "logs": {"sparkEvents": True},
}

S3_CODE: dict[str, Any] = {
    "application": {
        "file": "s3://acme-jobs/clicks/job.py",
        "pyFiles": ["lib.zip", "s3://acme-jobs/clicks/lib.zip"],
        "jars": ["s3://acme-jars/sink.jar"],
        "requirements": ["pandas==2.2.3", "orjson>=3,<4"],
    },
    "checkpoint": {
        "location": "s3://acme-streams/checkpoints",
        "s3": {"endpoint": "https://s3.acme.example", "ca": {"configMap": "acme-ca", "key": "bundle.pem"}},
    },
    "driver": {
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
        "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
    },
}
