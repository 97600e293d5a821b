"""Good manifests: every field is used in one of them."""

from __future__ import annotations

from tests.manifest_cases.builders import Manifest, a_job, a_savepoint

DESIGN_SAMPLE = """\
apiVersion: headrace.dev/v1alpha1
kind: StreamJob
metadata: {name: clicks-by-page}
spec:
  application: {file: s3://acme-jobs/clicks.py, args: [--window, 1m]}   # or module:, or code in the image
  image: acme/clicks:1.4.2                      # optional; the chart has a default
  checkpoint: {location: s3://acme-streams/checkpoints}
  executors: {count: 2, cores: 2, memory: 4Gi}
  autoscaling: {max: 12, lagObjective: 30s}
  savepoints: {schedule: "0 * * * *", keep: 24}
  upgrade: {strategy: Rehearsed}                # Rehearsed | Cold | Stateless
"""

_POD = {
    "cores": 2,
    "memory": "4Gi",
    "memoryOverhead": "2Gi",
    "scratch": "50Gi",
    "resources": {"requests": {"cpu": "500m", "ephemeral-storage": "20Gi"}, "limits": {"nvidia.com/gpu": 1}},
    "serviceAccount": "streams",
    "labels": {"team": "web"},
    "annotations": {"example.com/note": "any text, also with spaces"},
    "env": [
        {"name": "MODE", "value": "fast"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "api", "key": "token"}}},
    ],
    "envFrom": [{"prefix": "APP_", "configMapRef": {"name": "settings", "optional": True}}],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "tmp", "emptyDir": {}},
    ],
    "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "in", "readOnly": True}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "streams",
    "schedulerName": "volcano",
    "podSecurityContext": {"fsGroup": 185},
    "securityContext": {"readOnlyRootFilesystem": True},
    "patch": {"spec": {"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}]}},
}

# What has defaults of its own inside lists and references, without them.
_TERSE_POD = {
    "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
    "volumes": [{"name": "tmp", "emptyDir": {}}],
    "volumeMounts": [{"name": "tmp", "mountPath": "/scratch"}],
    "tolerations": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}],
}

GOOD: dict[str, Manifest] = {
    "the smallest job": a_job(),
    "a module": a_job(application={"module": "acme.jobs.clicks"}),
    "code in the image": a_job(application={"file": "local:///opt/app/job.py"}),
    "code in a ConfigMap": a_job(application={"configMap": {"name": "code", "key": "main.py"}}),
    "code under the usual key": a_job(application={"configMap": {"name": "code"}}),
    "everything beside the code": a_job(
        application={
            "file": "s3://acme-jobs/a/b/clicks.py",
            "args": ["--window", "1m"],
            "pyFiles": ["lib.zip", "s3://acme-jobs/lib.whl"],
            "jars": ["local:///opt/jars/x.jar"],
            "requirements": ["pandas==2.2.3", "requests[socks]>=2,<3", "numpy"],
        }
    ),
    "a pod with everything": a_job(driver={**_POD, "evictions": "Block"}, executors={**_POD, "count": 3}),
    "pods in few words": a_job(driver=_TERSE_POD, executors=_TERSE_POD),
    "an image by digest": a_job(
        image=f"registry.example.com:5000/team/job@sha256:{'0' * 64}",
        imagePullPolicy="IfNotPresent",
        imagePullSecrets=[{"name": "registry"}],
    ),
    "settings of Spark": a_job(
        sparkConf={
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.streaming.stateStore.encodingFormat": "avro",
        }
    ),
    "a private S3": a_job(
        checkpoint={
            "location": "s3://streams/checkpoints/prod",
            "s3": {
                "endpoint": "https://s3.example.com:9000",
                "region": "us-east-1",
                "pathStyle": True,
                "ca": {"secret": "ca"},
                "encryption": {"type": "SSE-KMS", "kmsKeyId": "alias/streams"},
                "credentials": {"secret": "keys", "accessKeyId": "id", "secretAccessKey": "key"},
            },
        }
    ),
    "a private S3, written out": a_job(
        checkpoint={
            "s3": {
                "ca": {"configMap": "ca", "key": "bundle.pem"},
                "credentials": {"secret": "keys", "sessionToken": "token"},
            }
        }
    ),
    "a directory": a_job(checkpoint={"location": "file:///var/streams"}),
    "S3 settings without a location": a_job(checkpoint={"s3": {"region": "eu-central-1"}}),
    "state": a_job(state={"partitions": 64, "memory": "1Gi"}, executors={"memory": "8Gi"}),
    "Kafka in the open": a_job(kafka={"bootstrapServers": "a:9092"}),
    "as much state as lies beside the heap": a_job(state={"memory": "2Gi"}, executors={"memory": "5Gi"}),
    "as much state as a small container has": a_job(state={"memory": "384Mi"}, executors={"memory": "768Mi"}),
    "Kafka with a password": a_job(
        kafka={
            "bootstrapServers": "a:9092,b.example.com:9092",
            "protocol": "SASL_SSL",
            "sasl": {"secret": "kafka", "mechanism": "PLAIN"},
            "tls": {"ca": {"configMap": "ca"}},
        }
    ),
    "Kafka with everything": a_job(
        kafka={
            "protocol": "SASL_SSL",
            "sasl": {"secret": "kafka", "username": "user", "password": "pass"},
            "tls": {
                "ca": {"secret": "ca", "key": "ca.pem"},
                "client": {"secret": "cert", "certificate": "cert.pem", "privateKey": "key.pem"},
            },
        }
    ),
    "Kafka with a certificate": a_job(kafka={"protocol": "SSL", "tls": {"client": {"secret": "cert"}}}),
    "a nightly job": a_job(
        trigger={"mode": "AvailableNow", "schedule": "30 1 * * MON-FRI", "timeZone": "Europe/Berlin"}
    ),
    "an interval": a_job(trigger={"interval": "1m30s"}),
    "autoscaling with everything": a_job(
        autoscaling={
            "mode": "Advise",
            "min": 2,
            "max": 8,
            "emergencyMax": 12,
            "lagObjective": "45s",
            "blackoutWindows": [{"schedule": "0 2 * * SUN", "duration": "1h", "timeZone": "Etc/UTC"}],
        },
        executors={"count": 2},
        objectives={"latency": "500ms"},
    ),
    "left alone at noon": a_job(
        autoscaling={"max": 8, "blackoutWindows": [{"schedule": "0 12 * * *", "duration": "30m"}]}
    ),
    "asleep without work": a_job(autoscaling={"max": 8, "idle": {}}),
    "asleep as it is asked to": a_job(
        autoscaling={"max": 8, "idle": {"after": "5m", "lookEvery": "10s", "maxSleep": "1h"}}
    ),
    "scaled by somebody else": a_job(autoscaling={"mode": "Off", "max": 4}, executors={"count": 40}),
    "savepoints": a_job(
        savepoints={
            "schedule": "0 */4 * * *",
            "keep": 5,
            "maxAge": "168h",
            "onUpgrade": False,
            "onSuspend": False,
            "onDelete": True,
            "verify": "State",
            "maxCopyRate": "100Mi",
        }
    ),
    "an upgrade with everything": a_job(
        upgrade={
            "strategy": "Cold",
            "rehearsal": {"batches": 5, "timeLimit": "20m", "callForeachBatch": True},
            "standby": {"enabled": False, "maxAge": "1h"},
            "startTimeout": "20m",
            "verifyWindow": "10m",
            "rollback": "Manual",
            "stateCompatible": True,
        }
    ),
    "from the newest lineage": a_job(startFrom={"latest": True}),
    "from a savepoint": a_job(startFrom={"savepoint": "orders-1"}),
    "from a path": a_job(startFrom={"path": "s3://streams/savepoints/orders-1"}),
    "from a Spark checkpoint": a_job(startFrom={"path": "s3://streams/old/ckpt", "query": "orders"}),
    "from a time": a_job(startFrom={"timestamp": "2026-01-31T08:00:00Z"}),
    "from offsets": a_job(startFrom={"offsets": {"revenue": '{"orders":{"0":4711}}'}}),
    "from nothing": a_job(startFrom={"none": True}),
    "how it lives": a_job(
        suspend=True,
        restartNonce="2",
        restart={"backoff": {"min": "5s", "max": "10m"}, "stableAfter": "30m"},
        watchdog={"batchTimeout": "5m", "action": "Report"},
        drainTimeout="30s",
        deletionPolicy="Delete",
        lostNode="Force",
        logs={"sparkEvents": True},
    ),
    "objects with nothing in them": a_job(
        state={}, savepoints={}, upgrade={}, restart={}, watchdog={}, logs={}, trigger={}
    ),
    "objects in objects with nothing in them": a_job(
        upgrade={"rehearsal": {}, "standby": {}}, restart={"backoff": {}}
    ),
    "an event log of its own": a_job(sparkConf={"spark.eventLog.dir": "s3a://acme-history/spark"}),
    "nulls are nothing": a_job(executors=None, image=None),
    "a savepoint": a_savepoint(),
    "a savepoint with everything": a_savepoint(
        cause="Schedule",
        verify="Restore",
        pinned=True,
        deletionPolicy="Retain",
        timeLimit="2h",
        maxCopyRate="100Mi",
    ),
    "an imported savepoint": a_savepoint(path="s3://streams/savepoints/orders-1"),
}
