"""Kafka, an S3 server, PostgreSQL and a toolbox, as pods: the same on every cluster."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.provider import Cluster
from tests.e2e.testimages import s3_server

HERE = Path(__file__).parent
ACCESS_KEY, SECRET_KEY, BUCKET = "e2e-access", "e2e-secret", "streams"

# One broker that is its own controller. Small buffers: it shares two cores and their memory with a cluster.
BROKER_SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://kafka.{namespace}.svc:9092
controller.listener.names=CONTROLLER
log.dirs=/scratch/kafka
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=16777216
"""
LOGGING = """rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%d] %p %m (%c)%n
"""
KAFKA = """export CLASSPATH='/opt/kafka/*' settings=/services/broker.properties
export JDK_JAVA_OPTIONS="-Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
  -Dlog4j2.configurationFile=/services/log4j2.properties"
java kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c $settings
exec java kafka.Kafka $settings
"""
S3 = {
    "versitygw": """mkdir -p /scratch/data /scratch/iam
exec /opt/s3-server --port :7070 --region us-east-1 --iam-dir /scratch/iam --keep-alive --health /healthz \
  --access-log /scratch/access.log posix /scratch/data
""",
    # Nothing but the API: no console, no look for updates.
    "minio": """export MINIO_ROOT_USER=$ROOT_ACCESS_KEY MINIO_ROOT_PASSWORD=$ROOT_SECRET_KEY
export MINIO_BROWSER=off MINIO_UPDATE=off
exec /opt/s3-server server --quiet --address :7070 --config-dir /scratch/minio /scratch/data
""",
}
# Whoever reaches it may come in, under any name: nobody but the cluster's pods can.
POSTGRES = """export PATH=/usr/lib/postgresql/15/bin:$PATH
initdb --pgdata /scratch/postgres --username e2e --auth trust --locale C --encoding UTF8
echo 'host all all all trust' >> /scratch/postgres/pg_hba.conf
exec postgres -D /scratch/postgres -h '*' -k /tmp -c shared_buffers=32MB
"""


@dataclass(frozen=True)
class Services:
    """What a test's job reads, writes and keeps its state in."""

    cluster: Cluster
    namespace: str

    @property
    def bootstrap(self) -> str:
        return f"kafka.{self.namespace}.svc:9092"

    @property
    def s3_endpoint(self) -> str:
        return f"http://s3.{self.namespace}.svc:7070"

    @property
    def postgres(self) -> str:
        """As libpq and its friends want to be told."""
        return f"host=postgres.{self.namespace}.svc user=e2e dbname=postgres"

    def create_topic(self, topic: str, *, partitions: int) -> None:
        self._kafka_tool("create-topic", "--topic", topic, "--partitions", str(partitions))

    def add_partitions(self, topic: str, *, partitions: int) -> None:
        """Up to this number."""
        self._kafka_tool("add-partitions", "--topic", topic, "--partitions", str(partitions))

    def produce(self, topic: str, *, first: int, count: int, keys: int, rate: float) -> None:
        numbers = {"--first": first, "--count": count, "--keys": keys, "--rate": rate}
        flags = [text for flag, value in numbers.items() for text in (flag, str(value))]
        self._kafka_tool("produce", "--topic", topic, *flags)

    def produce_until(self, stop: str, topic: str, *, keys: int, rate: float, again: int) -> None:
        """Goes on by itself, in the pod, until somebody makes the file."""
        numbers = f"--count 1000000000 --keys {keys} --rate {rate} --again {again} --until {stop}"
        tool = f"python3 /services/kafka_tool.py produce --bootstrap {self.bootstrap} --topic {topic}"
        self.shell("kafka", f"setsid nohup {tool} {numbers} > {stop}.log 2>&1 < /dev/null &")

    def sql(self, statements: str) -> list[list[str]]:
        """The rows of the last statement, if it has any."""
        psql = "/usr/lib/postgresql/15/bin/psql -h /tmp -U e2e -d postgres -v ON_ERROR_STOP=1 --quiet"
        text = self._exec("postgres", [*psql.split(), "--csv", "--tuples-only", "-f", "-"], stdin=statements)
        return list(csv.reader(text.splitlines()))

    def produce_at(self, topic: str, rates: Sequence[float], *, step: float, first: int, keys: int) -> int:
        """At one rate after the other, each for a step. How many records that were."""
        flags = {"--rates": ",".join(map(str, rates)), "--step": step, "--first": first, "--keys": keys}
        given = [text for flag, value in flags.items() for text in (flag, str(value))]
        return json.loads(self._kafka_tool("produce", "--topic", topic, *given))["produced"]

    def consume(self, topic: str) -> list[dict[str, Any]]:
        lines = self._kafka_tool("consume", "--topic", topic).splitlines()
        return [json.loads(json.loads(line)["value"]) for line in lines]

    def objects(self, prefix: str) -> set[str]:
        """Keys below a prefix of the bucket."""
        return set(self._s3_tool("list", f"{BUCKET}/{prefix}").splitlines())

    def read_object(self, key: str) -> str:
        return self._s3_tool("read", f"{BUCKET}/{key}")

    def write_object(self, key: str, text: str) -> None:
        self._s3_tool("write", f"{BUCKET}/{key}", stdin=text)

    def http_text(self, url: str) -> str:
        """A request from inside the cluster."""
        script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).read().decode())"
        return self._exec("kafka", ["python3", "-c", script, url])

    def copy_keys(self, namespace: str, *, name: str = "s3-keys", secret_key: str | None = None) -> None:
        """The access keys of the store, or wrong ones, as a Secret of a namespace of jobs."""
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": secret_key or SECRET_KEY}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": keys}
        self.cluster.api.apply(f"/api/v1/namespaces/{namespace}/secrets/{name}", secret).need()

    def make_bucket(self, bucket: str) -> None:
        self._s3_tool("make-bucket", bucket)

    def shell(self, pod: str, script: str) -> str:
        return self._exec(pod, ["sh", "-c", script])

    def _kafka_tool(self, *arguments: str) -> str:
        tool = ["python3", "/services/kafka_tool.py", arguments[0], "--bootstrap", self.bootstrap]
        return self._exec("kafka", [*tool, *arguments[1:]])

    def _s3_tool(self, command: str, place: str, *, stdin: str | None = None) -> str:
        tool = ["python3", "/services/s3_tool.py", command, "http://localhost:7070", place]
        return self._exec("s3", tool, stdin=stdin)

    def _exec(self, pod: str, command: list[str], stdin: str | None = None) -> str:
        interactive = ["-i"] if stdin is not None else []
        return self.cluster.kubectl(
            "exec", *interactive, "-n", self.namespace, pod, "--", *command, stdin=stdin
        )


def start_services(cluster: Cluster, namespace: str, image: str) -> Services:
    files = {
        "broker.properties": BROKER_SETTINGS.format(namespace=namespace),
        "log4j2.properties": LOGGING,
        **{tool: (HERE / tool).read_text() for tool in ("kafka_tool.py", "s3_tool.py")},
    }
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    root = [
        {"name": "ROOT_ACCESS_KEY", "value": ACCESS_KEY},
        {"name": "ROOT_SECRET_KEY", "value": SECRET_KEY},
    ]
    meta = {"namespace": namespace}
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "services", **meta}, "data": files},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3-keys", **meta}, "stringData": keys},
        *_pod_and_service("kafka", KAFKA, image, port=9092, env=[], **meta),
        *_pod_and_service("s3", S3[s3_server()], image, port=7070, env=root, **meta),
        *_pod_and_service("postgres", POSTGRES, image, port=5432, env=[], **meta),
    ]
    cluster.kubectl(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    )
    pods = ("pod/kafka", "pod/s3", "pod/postgres")
    cluster.kubectl("wait", "-n", namespace, *pods, "--for=condition=Ready", "--timeout=300s")
    services = Services(cluster, namespace)
    services.make_bucket(BUCKET)
    return services


def rather_on(node: str) -> dict[str, Any]:
    """An affinity to a node of the native cluster; elsewhere it means nothing."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    preferred = {"weight": 100, "preference": {"matchExpressions": [here]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}


def _pod_and_service(
    name: str, script: str, image: str, *, port: int, env: list[dict[str, Any]], namespace: str
) -> list[dict[str, Any]]:
    labels = {"service": name}
    metadata = {"name": name, "namespace": namespace}
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "env": env,
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
        "volumeMounts": [
            {"name": "services", "mountPath": "/services"},
            {"name": "work", "mountPath": "/scratch"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    volumes = [
        {"name": "services", "configMap": {"name": "services"}},
        {"name": "work", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": labels},
        "spec": {
            "containers": [container],
            "volumes": volumes,
            # Beside the control plane: tests that lose another node still want to speak to them.
            "affinity": rather_on("node1"),
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": labels, "ports": [{"port": port}]},
    }
    return [pod, service]
