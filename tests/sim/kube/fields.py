"""A valid edit of every field of the spec: the job before it, and the job after it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from tests.sim.kube.fake_api import Object


@dataclass(frozen=True)
class Edit:
    """A job that comes to have `value` in a field. In other fields the two jobs are the same."""

    value: Any
    beside: Object = field(default_factory=dict)
    """What else both have, beyond the code."""

    instead_of: str | None = None
    """The field of the job before that excludes this one."""

    def before(self) -> Object:
        return {"application": {"file": "job.py"}, **copy.deepcopy(self.beside)}

    def after(self, path: str) -> Object:
        spec = self.before()
        if self.instead_of is not None:
            *above, last = self.instead_of.split(".")
            del _section(spec, above)[last]
        *above, last = path.split(".")
        _section(spec, above)[last] = copy.deepcopy(self.value)
        return spec


def _section(spec: Object, path: list[str]) -> Object:
    for name in path:
        spec = spec.setdefault(name, {})
    return spec


# The ConfigMaps that the jobs of this table may take their code from.
CODE = {"code": {"job.py": "print(1)\n", "main.py": "print(2)\n"}}

_NOT_A_FILE = {"instead_of": "application.file"}
_S3_CA = {"checkpoint": {"s3": {"ca": {"secret": "ca"}}}}
_S3_KEYS = {"checkpoint": {"s3": {"credentials": {"secret": "keys"}}}}
_S3_KMS = {"checkpoint": {"s3": {"encryption": {"type": "SSE-KMS"}}}}
_SASL = {"kafka": {"protocol": "SASL_SSL", "sasl": {"secret": "kafka"}}}
_TLS = {"kafka": {"protocol": "SSL"}}
_REHEARSED = {"upgrade": {"strategy": "Rehearsed"}}
_COLD = {"upgrade": {"strategy": "Cold"}}
_TLS_CA = {"kafka": {"protocol": "SSL", "tls": {"ca": {"secret": "ca"}}}}
_TLS_CLIENT = {"kafka": {"protocol": "SSL", "tls": {"client": {"secret": "cert"}}}}
_FINITE = {"trigger": {"mode": "AvailableNow"}}
_NIGHTLY = {"trigger": {"mode": "AvailableNow", "schedule": "30 1 * * *"}}
_SCALED = {"autoscaling": {"max": 8}, "executors": {"count": 3}}
_SLEEPY = {"autoscaling": {"max": 8, "idle": {"after": "10m"}}}
_STATE_FITS = {"upgrade": {"stateCompatible": True}}

_VOLUME = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}

_POD: dict[str, Edit] = {
    "cores": Edit(2),
    "memory": Edit("4Gi"),
    "memoryOverhead": Edit("1Gi"),
    "scratch": Edit("50Gi"),
    "resources.requests": Edit({"cpu": "500m", "ephemeral-storage": "20Gi"}),
    "resources.limits": Edit({"cpu": "2", "nvidia.com/gpu": "1"}),
    "serviceAccount": Edit("streams"),
    "labels": Edit({"team": "web"}),
    "annotations": Edit({"example.com/note": "any text"}),
    "env": Edit([{"name": "MODE", "value": "fast"}]),
    "envFrom": Edit([{"prefix": "APP_", "configMapRef": {"name": "settings"}}]),
    "volumes": Edit([_VOLUME]),
    "nodeSelector": Edit({"disk": "ssd"}),
    "tolerations": Edit([{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]),
    "affinity": Edit({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}),
    "priorityClassName": Edit("streams"),
    "schedulerName": Edit("volcano"),
    "podSecurityContext": Edit({"fsGroup": 185}),
    "securityContext": Edit({"readOnlyRootFilesystem": False}),
    "patch": Edit({"spec": {"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}]}}),
}


def _pod(who: str) -> dict[str, Edit]:
    mount = Edit([{"name": "data", "mountPath": "/data"}], {who: {"volumes": [_VOLUME]}})
    return {f"{who}.{name}": edit for name, edit in {**_POD, "volumeMounts": mount}.items()}


EDITS: dict[str, Edit] = {
    "application.file": Edit("s3://acme-jobs/clicks.py"),
    "application.module": Edit("acme.clicks", **_NOT_A_FILE),
    "application.configMap.name": Edit("code", **_NOT_A_FILE),
    "application.configMap.key": Edit(
        "main.py", {"application": {"configMap": {"name": "code", "key": "job.py"}}}
    ),
    "application.args": Edit(["--window", "1m"]),
    "application.pyFiles": Edit(["lib.zip", "s3://acme-jobs/lib.whl"]),
    "application.jars": Edit(["local:///opt/jars/x.jar"]),
    "application.requirements": Edit(["pandas==2.2.3"]),
    "image": Edit("acme/clicks:1.4.2"),
    "imagePullPolicy": Edit("Always"),
    "imagePullSecrets": Edit([{"name": "registry"}]),
    "sparkConf": Edit({"spark.sql.session.timeZone": "UTC"}),
    "checkpoint.location": Edit("s3://elsewhere/checkpoints", _STATE_FITS),
    "checkpoint.s3.endpoint": Edit("https://s3.example.com:9000", _STATE_FITS),
    "checkpoint.s3.region": Edit("eu-central-1"),
    "checkpoint.s3.pathStyle": Edit(True),
    "checkpoint.s3.ca.secret": Edit("ca"),
    "checkpoint.s3.ca.configMap": Edit("ca", _S3_CA, "checkpoint.s3.ca.secret"),
    "checkpoint.s3.ca.key": Edit("bundle.pem", _S3_CA),
    "checkpoint.s3.encryption.type": Edit("SSE-KMS"),
    "checkpoint.s3.encryption.kmsKeyId": Edit("alias/streams", _S3_KMS),
    "checkpoint.s3.credentials.secret": Edit("keys"),
    "checkpoint.s3.credentials.accessKeyId": Edit("id", _S3_KEYS),
    "checkpoint.s3.credentials.secretAccessKey": Edit("key", _S3_KEYS),
    "checkpoint.s3.credentials.sessionToken": Edit("token", _S3_KEYS),
    "state.partitions": Edit(64),
    "state.memory": Edit("256Mi"),
    **_pod("driver"),
    "driver.evictions": Edit("Block"),
    **_pod("executors"),
    "executors.count": Edit(3),
    "kafka.bootstrapServers": Edit("kafka:9092"),
    "kafka.protocol": Edit("SSL", {"kafka": {"bootstrapServers": "kafka:9093"}}),
    "kafka.sasl.mechanism": Edit("PLAIN", _SASL),
    "kafka.sasl.secret": Edit("other", _SASL),
    "kafka.sasl.username": Edit("user", _SASL),
    "kafka.sasl.password": Edit("pass", _SASL),
    "kafka.tls.ca.secret": Edit("ca", _TLS),
    "kafka.tls.ca.configMap": Edit("ca", _TLS_CA, "kafka.tls.ca.secret"),
    "kafka.tls.ca.key": Edit("bundle.pem", _TLS_CA),
    "kafka.tls.client.secret": Edit("cert", _TLS),
    "kafka.tls.client.certificate": Edit("cert.pem", _TLS_CLIENT),
    "kafka.tls.client.privateKey": Edit("key.pem", _TLS_CLIENT),
    "trigger.mode": Edit("AvailableNow"),
    "trigger.interval": Edit("30s"),
    "trigger.schedule": Edit("30 1 * * *", _FINITE),
    "trigger.timeZone": Edit("Europe/Berlin", _NIGHTLY),
    "autoscaling.mode": Edit("Advise", _SCALED),
    "autoscaling.min": Edit(2, _SCALED),
    "autoscaling.max": Edit(12, _SCALED),
    "autoscaling.emergencyMax": Edit(20, _SCALED),
    "autoscaling.lagObjective": Edit("45s", _SCALED),
    "autoscaling.blackoutWindows": Edit([{"schedule": "0 2 * * SUN", "duration": "1h"}], _SCALED),
    "autoscaling.idle.after": Edit("30m", _SLEEPY),
    "autoscaling.idle.lookEvery": Edit("5m", _SLEEPY),
    "autoscaling.idle.maxSleep": Edit("2h", _SLEEPY),
    "objectives.latency": Edit("500ms"),
    "savepoints.schedule": Edit("0 */4 * * *"),
    "savepoints.keep": Edit(5),
    "savepoints.maxAge": Edit("168h"),
    "savepoints.onUpgrade": Edit(False),
    "savepoints.onSuspend": Edit(False),
    "savepoints.onDelete": Edit(True),
    "savepoints.verify": Edit("State"),
    "savepoints.maxCopyRate": Edit("100Mi"),
    "upgrade.strategy": Edit("Stateless"),
    "upgrade.rehearsal.batches": Edit(5, _REHEARSED),
    "upgrade.rehearsal.timeLimit": Edit("20m", _REHEARSED),
    "upgrade.rehearsal.callForeachBatch": Edit(True, _REHEARSED),
    "upgrade.standby.enabled": Edit(False, _REHEARSED),
    "upgrade.standby.maxAge": Edit("1h", _REHEARSED),
    "upgrade.startTimeout": Edit("20m", _COLD),
    "upgrade.verifyWindow": Edit("10m", _COLD),
    "upgrade.rollback": Edit("Manual", _COLD),
    "upgrade.stateCompatible": Edit(True),
    "startFrom.latest": Edit(True),
    "startFrom.savepoint": Edit("clicks-1"),
    "startFrom.path": Edit("s3://streams/savepoints/clicks-1"),
    "startFrom.query": Edit("clicks", {"startFrom": {"path": "s3://old/checkpoint"}}),
    "startFrom.timestamp": Edit("2026-01-31T08:00:00Z"),
    "startFrom.offsets": Edit({"q": '{"clicks":{"0":4711}}'}),
    "startFrom.none": Edit(True),
    "suspend": Edit(True),
    "restartNonce": Edit("2"),
    "restart.backoff.min": Edit("5s"),
    "restart.backoff.max": Edit("15s"),
    "restart.stableAfter": Edit("30s"),
    "watchdog.batchTimeout": Edit("5m"),
    "watchdog.action": Edit("Report"),
    "logs.sparkEvents": Edit(True),
    "drainTimeout": Edit("30s"),
    "deletionPolicy": Edit("Delete"),
    "lostNode": Edit("Force"),
}
