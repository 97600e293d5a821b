"""Headrace as its users get it: the chart, installed by real Helm, under the chart's own rights."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.core.manifests import Platform
from tests.cluster import binaries
from tests.cluster.console import MissingError
from tests.cluster.processes import NotReadyError
from tests.cluster.provider import Cluster

CHART = Path(__file__).parents[2] / "charts/headrace"
# Always the same: the CRDs outlive a release, and only a release of this name may adopt them again.
RELEASE, NAMESPACE = "headrace", "headrace"


@dataclass(frozen=True)
class Installed:
    """The operator that runs in the cluster."""

    cluster: Cluster

    @property
    def account(self) -> str:
        return f"system:serviceaccount:{NAMESPACE}:{RELEASE}"

    def pods(self) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        selector = "app.kubernetes.io/component=operator"
        return self.cluster.api.get(path, labelSelector=selector).need()["items"]

    def leader(self) -> dict[str, Any] | None:
        """The pod that holds the Lease, while it is there."""
        holder = self.lease()["spec"].get("holderIdentity") or ""
        name = holder.partition("_")[0]
        return next((pod for pod in self.pods() if pod["metadata"]["name"] == name), None)

    def lease(self) -> dict[str, Any]:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{RELEASE}"
        return self.cluster.api.get(path).need()

    def log(self, lines: int = 60) -> str:
        tails = [
            self.cluster.kubectl("logs", "-n", NAMESPACE, pod["metadata"]["name"], f"--tail={lines}")
            for pod in self.pods()
            if pod["status"]["phase"] == "Running"
        ]
        return "\n--- operator\n".join(["", *tails])


@contextmanager
def installed(cluster: Cluster, platform: Platform, *, job_namespaces: list[str]) -> Iterator[Installed]:
    refuse_foreign_release(cluster)
    helm = _Helm(cluster)
    helm(
        "upgrade",
        "--install",
        RELEASE,
        str(CHART),
        "--create-namespace",
        stdin=_values(platform, job_namespaces),
    )
    cluster.kubectl("rollout", "status", "-n", NAMESPACE, f"deployment/{RELEASE}", "--timeout=180s")
    try:
        yield Installed(cluster)
    finally:
        helm("uninstall", RELEASE, "--wait", "--timeout=120s")


class _Helm:
    def __init__(self, cluster: Cluster) -> None:
        program = binaries.ensure(("helm",))["helm"]
        self._command = [str(program), "--namespace", NAMESPACE, *connection_flags(cluster.kubectl_command)]

    def __call__(self, *arguments: str, stdin: dict[str, Any] | None = None) -> str:
        values = ["--values", "-"] if stdin is not None else []
        done = subprocess.run(
            [*self._command, *arguments, *values],
            input=json.dumps(stdin) if stdin is not None else None,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotReadyError(f"`helm {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout


def connection_flags(kubectl: tuple[str, ...]) -> list[str]:
    """As kubectl is told: the same kubeconfig, or the same context."""
    flags = [flag for flag in kubectl if flag.startswith(("--kubeconfig=", "--context="))]
    return [flag.replace("--context=", "--kube-context=", 1) for flag in flags]


def refuse_foreign_release(cluster: Cluster) -> None:
    """Tests would take it over and remove it at their end. On clusters of our own it is an earlier run's."""
    if cluster.name != "current":
        return
    listed = _Helm(cluster)("list", "--all-namespaces", "--all", "--output", "json")
    if found := releases_of_headrace(json.loads(listed)):
        raise MissingError(
            f"Headrace is installed in this cluster ({', '.join(found)}): the tests would take it over, and "
            "remove it at their end. Choose another cluster, or, if it is an earlier run's: "
            f"helm uninstall {RELEASE} -n {NAMESPACE}"
        )


def releases_of_headrace(listed: list[dict[str, Any]]) -> list[str]:
    """Of `helm list`: by the chart, whatever the release is called, since the CRDs are one cluster's."""
    return [
        f"release {one['name']} in namespace {one['namespace']}"
        for one in listed
        if one["name"] == RELEASE or re.fullmatch(r"headrace-\d.*", one["chart"])
    ]


def _values(platform: Platform, job_namespaces: list[str]) -> dict[str, Any]:
    def image(reference: str) -> dict[str, str]:
        repository, _, tag = reference.rpartition(":")
        return {"repository": repository, "tag": tag}

    return {
        "image": {**image(platform.headrace_image), "pullPolicy": "IfNotPresent"},
        "jobs": {"image": image(platform.job_image), "namespaces": job_namespaces},
        "operator": {
            # Debug: a failed test shows what the operator did, action by action.
            "logLevel": "debug",
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        },
    }
