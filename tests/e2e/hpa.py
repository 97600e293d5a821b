"""A real HorizontalPodAutoscaler, and the least that gives it a number: an external metric without a server.

The HPA asks for a list, `/apis/external.metrics.k8s.io/v1beta1/namespaces/<namespace>/<metric>`. Most have
an adapter behind it that asks Prometheus. Here it is a custom resource: its plural is the metric's name,
its kind that of the answer, and its one object the value.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.cluster.api import Api
from tests.cluster.processes import wait_until

_GROUP, _VERSION = "external.metrics.k8s.io", "v1beta1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class ExternalMetric:
    api: Api
    namespace: str
    name: str

    def define(self) -> None:
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{self.name}.{_GROUP}",
                # Such groups are Kubernetes' own, and ask for a word on that.
                "annotations": {"api-approved.kubernetes.io": "unapproved, the adapter of a test"},
            },
            "spec": {
                "group": _GROUP,
                "scope": "Namespaced",
                "names": {
                    "plural": self.name,
                    "singular": "externalmetricvalue",
                    "kind": "ExternalMetricValue",
                    "listKind": "ExternalMetricValueList",
                },
                "versions": [
                    {
                        "name": _VERSION,
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "metricName": {"type": "string"},
                                    "timestamp": {"type": "string"},
                                    "value": {"type": "string"},
                                },
                            }
                        },
                    }
                ],
            },
        }
        self.api.apply(f"{_DEFINITIONS}/{self.name}.{_GROUP}", definition).need()
        assert wait_until(lambda: self.api.get(self._list).ok, seconds=60, every=0.5)

    def tell(self, value: float) -> None:
        body = {
            "apiVersion": f"{_GROUP}/{_VERSION}",
            "kind": "ExternalMetricValue",
            "metadata": {"name": "now"},
            "metricName": self.name,
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            # In thousandths, as Kubernetes writes quantities that are not whole.
            "value": f"{round(value * 1000)}m",
        }
        self.api.apply(f"{self._list}/now", body).need()

    def remove(self) -> None:
        self.api.delete(f"{_DEFINITIONS}/{self.name}.{_GROUP}")

    @property
    def _list(self) -> str:
        return f"/apis/{_GROUP}/{_VERSION}/namespaces/{self.namespace}/{self.name}"


def autoscaler(job: str, metric: str, *, rows_per_executor: int, most: int) -> dict[str, Any]:
    """As docs/how-to/scale-with-hpa-or-keda.md has it, but quick to go down."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": job},
        "spec": {
            "scaleTargetRef": {"apiVersion": "headrace.dev/v1alpha1", "kind": "StreamJob", "name": job},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": metric},
                        "target": {"type": "AverageValue", "averageValue": str(rows_per_executor)},
                    },
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}},
        },
    }
