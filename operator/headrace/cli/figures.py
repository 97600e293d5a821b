"""The numbers that move, which the status leaves out: read from the operator's metrics, where the user may.

It takes the rights to list pods in all namespaces and to reach the operator's through the API server (`get
pods/proxy`), which platform teams have. Without them nothing is known, and nothing is made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headrace.cli.cluster import Cluster, ClusterProblem
from headrace.core.expectations import Figures
from headrace.kube.errors import ApiError
from headrace.kube.resources import PODS

_OPERATOR = "app.kubernetes.io/name=headrace,app.kubernetes.io/component=operator"
_PORT = 8080
_LINE = re.compile(r"^(?P<name>headrace_job_\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class _Sample:
    name: str
    labels: dict[str, str]
    value: float


def read_figures(cluster: Cluster, job: str) -> Figures:
    """Of the slowest batch and the sums of all queries: a job is as fast as its slowest query."""
    samples = [
        sample
        for sample in _samples(_metrics(cluster))
        if (sample.labels.get("namespace"), sample.labels.get("job")) == (cluster.namespace, job)
    ]
    batches = _values(samples, "batch_duration_seconds")
    arrival, capacity = (
        _values(samples, "input_rows_per_second"),
        _values(samples, "processed_rows_per_second"),
    )
    sinks = {one.labels["sink"] for one in samples if one.name == "headrace_job_sink"}
    return Figures(
        batch_seconds=max(batches, default=None),
        arrival_rows_per_second=sum(arrival) if arrival else None,
        capacity_rows_per_second=sum(capacity) if capacity else None,
        sinks=tuple(sorted(sinks)),
        stopped_seconds=min(_values(samples, "data_loss_if_stopped_seconds"), default=None),
    )


def _values(samples: list[_Sample], name: str) -> list[float]:
    return [sample.value for sample in samples if sample.name == f"headrace_job_{name}"]


def _metrics(cluster: Cluster) -> Iterator[str]:
    """Of all replicas: only the one that works knows the jobs."""
    try:
        pods = cluster.list(PODS, everywhere=True, selector=_OPERATOR)
    except (ClusterProblem, ApiError):
        return
    for pod in pods:
        path = PODS.path(pod["metadata"]["namespace"], f"{pod['metadata']['name']}:{_PORT}", "proxy/metrics")
        try:
            yield from cluster.transport.lines(path, query={})
        except (ClusterProblem, ApiError):
            continue


def _samples(lines: Iterable[str]) -> Iterator[_Sample]:
    for line in lines:
        if (found := _LINE.match(line)) is None:
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        yield _Sample(found["name"], dict(_LABEL.findall(found["labels"])), value)
