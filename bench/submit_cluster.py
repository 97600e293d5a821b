"""The stage of bench/submit.py: a real API server, the operator as a process, jobs, and eyes on the pods."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from tests.cluster.api import Api, Object
from tests.cluster.controlplane import LOOPBACK, running_api_server
from tests.cluster.processes import Process, start, wait_ready, wait_until

ROOT = Path(__file__).resolve().parent.parent
OPERATORS, JOBS = "headrace", "jobs"
STREAM_JOBS = f"/apis/headrace.dev/v1alpha1/namespaces/{JOBS}/streamjobs"
PODS = f"/api/v1/namespaces/{JOBS}/pods"
CLIENTS = 6
# Only names and versions: the bench must not take the CPU that it measures.
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
# What the operator writes; the Lease is not counted.
COUNTED = ("streamjobs", "pods", "configmaps", "services", "secrets", "events", "statefulsets")
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_COUNTER = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
# A typical job of the docs; its code is in its image.
SPEC = {
    "application": {"file": "local:///opt/jobs/clicks.py", "args": ["--window", "1m"]},
    "image": "acme/clicks:1.4.2",
    "checkpoint": {"location": "s3://acme-streams/checkpoints"},
    "executors": {"count": 2, "cores": 2, "memory": "4Gi"},
}


@dataclass(frozen=True)
class Server:
    api: Api
    url: str
    tls: ssl.SSLContext
    operator_kubeconfig: Path

    def connect(self, *, timeout: float = 60.0) -> http.client.HTTPSConnection:
        host, _, port = self.url.removeprefix("https://").partition(":")
        return http.client.HTTPSConnection(host, int(port), context=self.tls, timeout=timeout)

    def writes(self) -> Counter[str]:
        """All that the API server has counted so far, by verb and resource."""
        counted: Counter[str] = Counter()
        for labels, value in _COUNTER.findall(self.text("/metrics")):
            label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            if label["verb"] in WRITES and label["resource"] in COUNTED and label["code"].startswith("2"):
                inside = f"/{label['subresource']}" if label["subresource"] else ""
                counted[f"{label['verb']} {label['resource']}{inside}"] += int(float(value))
        return counted

    def text(self, path: str) -> str:
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", path)
            return connection.getresponse().read().decode()

    def check_complete(self, jobs: int) -> None:
        """Every job has all that it should have; otherwise there is nothing to measure."""
        counts = {
            kind: len(self.api.get(f"/api/v1/namespaces/{JOBS}/{kind}").need()["items"])
            for kind in ("pods", "configmaps", "services", "secrets")
        }
        states = [job.get("status", {}).get("state") for job in self.api.get(STREAM_JOBS).need()["items"]]
        wanted = {"pods": jobs, "configmaps": 2 * jobs, "services": jobs, "secrets": jobs}
        if counts != wanted or len(states) != jobs or not all(states):
            raise SystemExit(f"not complete: {counts}, statuses {Counter(states)}")


@contextmanager
def prepared_server(scratch: Path) -> Iterator[Server]:
    """With the CRDs, the namespaces, and the operator's ServiceAccount under the rights of the chart."""
    with running_api_server(scratch / "server") as running:
        api = Api.from_kubeconfig(running.kubeconfig)
        config = json.loads(running.kubeconfig.read_text())
        for namespace in (OPERATORS, JOBS):
            api.create("/api/v1/namespaces", {"metadata": {"name": namespace}}).need()
        _define(api)
        _give_rights(api)
        account = f"/api/v1/namespaces/{OPERATORS}/serviceaccounts/headrace/token"
        token = api.create(account, {"spec": {"expirationSeconds": 7200}}).need()["status"]["token"]
        config["users"][0]["user"] = {"token": token}
        kubeconfig = scratch / "operator.kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(config))
        yield Server(api, running.url, api._context or ssl.create_default_context(), kubeconfig)


def _define(api: Api) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())
        api.apply(f"{definitions}/{definition['metadata']['name']}", definition).need()
    if not wait_until(lambda: api.get(STREAM_JOBS).ok, seconds=30):
        raise SystemExit("the CRDs are not served")


def _give_rights(api: Api) -> None:
    text = (ROOT / "charts/headrace/templates/_helpers.tpl").read_text()
    found = re.search(r'define "headrace.operatorRules" -}}\n(.*?){{- end }}', text, re.DOTALL)
    assert found is not None
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    rules = [*yaml.safe_load(found[1]), {**lease, "verbs": ["create", "get", "update"]}]
    role = {"kind": "ClusterRole", "name": "headrace", "apiGroup": "rbac.authorization.k8s.io"}
    subject = {"kind": "ServiceAccount", "name": "headrace", "namespace": OPERATORS}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    meta = {"metadata": {"name": "headrace"}}
    api.create(f"/api/v1/namespaces/{OPERATORS}/serviceaccounts", meta).need()
    api.create(f"{rbac}/clusterroles", {**meta, "rules": rules}).need()
    api.create(f"{rbac}/clusterrolebindings", {**meta, "roleRef": role, "subjects": [subject]}).need()


@dataclass(frozen=True)
class RunningOperator:
    process: Process
    port: int

    def cpu_seconds(self) -> float:
        return cpu_seconds_of(self.process.pid)

    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def leads(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}/metrics", timeout=5) as answer:
                return "\nheadrace_leader 1.0" in answer.read().decode()
        except OSError:
            return False

    def wait_at_rest(self, *, seconds: float) -> None:
        """It leads, and has done with its start: hardly any CPU in a second."""

        def rests() -> bool:
            before = self.cpu_seconds()
            time.sleep(1)
            return self.cpu_seconds() - before < 0.05

        if not wait_until(lambda: self.leads() and rests(), seconds=seconds):
            raise SystemExit("the operator does not come to rest")


@contextmanager
def running_operator(server: Server, scratch: Path, *wrapper: str) -> Iterator[RunningOperator]:
    key, log, port = scratch / "token-key", scratch / "operator.log", 18080
    key.touch(mode=0o600)
    key.write_text("0123456789abcdef0123456789abcdef")
    command = [
        # Also when the bench is killed, nothing stays behind.
        *("setpriv", "--pdeathsig", "KILL"),
        *(wrapper or (sys.executable, "-m", "headrace.runtime")),
        "--job-image=headrace/spark:bench",
        "--headrace-image=headrace/operator:bench",
        f"--token-key-file={key}",
        f"--lease-namespace={OPERATORS}",
        f"--port={port}",
    ]
    process = start("operator", command, log=log, environment={"KUBECONFIG": str(server.operator_kubeconfig)})
    operator = RunningOperator(process, port)
    try:
        wait_ready(process, operator.leads, log=log, seconds=60)
        yield operator
        troubles = [line for line in log.read_text().splitlines() if " WARNING " in line or " ERROR " in line]
        for line in troubles[:5]:
            print(f"# operator: {line}", file=sys.stderr)
    finally:
        process.end()


def wait_until_quiet(server: Server, *, seconds: float) -> None:
    """Nothing is written any more, for a few seconds."""

    def quiet() -> bool:
        before = server.writes()
        time.sleep(3)
        return server.writes() == before

    if not wait_until(quiet, seconds=seconds):
        raise SystemExit(f"the operator never stops writing: {server.writes()}")


def cpu_seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def submit(server: Server, jobs: int) -> dict[str, float]:
    """Creates them faster than they can be worked on; when each was sent."""
    names = [f"job-{number:04}" for number in range(jobs)]
    with ThreadPoolExecutor(CLIENTS) as clients:
        sent = clients.map(lambda first: _submit(server, names[first::CLIENTS]), range(CLIENTS))
        return {name: moment for part in sent for name, moment in part.items()}


def _submit(server: Server, names: list[str]) -> dict[str, float]:
    sent: dict[str, float] = {}
    with contextlib.closing(server.connect()) as connection:
        for name in names:
            body = json.dumps(_job(name))
            sent[name] = time.monotonic()
            connection.request("POST", STREAM_JOBS, body=body, headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 201:
                raise SystemExit(f"{name} was refused: {text.decode()}")
    return sent


def _job(name: str) -> Object:
    return {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamJob",
        "metadata": {"name": name},
        "spec": SPEC,
    }


class PodWatch:
    """When each job's driver pod came to be, by a watch of the bench's own."""

    def __init__(self, server: Server) -> None:
        self.seen: dict[str, float] = {}
        connection = server.connect(timeout=3600)
        connection.request("GET", f"{PODS}?watch=true", headers={"Accept": METADATA_ONLY})
        self._socket = connection.sock
        self._answer = connection.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        # Closing would wait for the reader, and the reader for the server.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=10)

    def _read(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            while line := self._answer.readline():
                event = json.loads(line)
                if event["type"] == "ADDED":
                    job = event["object"]["metadata"]["labels"]["headrace.dev/job"]
                    self.seen.setdefault(job, time.monotonic())

    def wait_for(self, jobs: int, *, seconds: float) -> dict[str, float]:
        if not wait_until(lambda: len(self.seen) >= jobs, seconds=seconds, every=0.02):
            raise SystemExit(f"only {len(self.seen)} of {jobs} driver pods after {seconds:.0f} s")
        return dict(self.seen)
