"""The kinds of objects that Headrace speaks of, and where the API keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api import GROUP, VERSION


@dataclass(frozen=True)
class Resource:
    prefix: str
    plural: str

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        place = f"/namespaces/{namespace}" if namespace is not None else ""
        parts = [f"{self.prefix}{place}/{self.plural}", name, subresource]
        return "/".join(part for part in parts if part is not None)


STREAM_JOBS = Resource(f"/apis/{GROUP}/{VERSION}", "streamjobs")
STREAM_SAVEPOINTS = Resource(f"/apis/{GROUP}/{VERSION}", "streamsavepoints")
PODS = Resource("/api/v1", "pods")
CONFIG_MAPS = Resource("/api/v1", "configmaps")
SERVICES = Resource("/api/v1", "services")
SECRETS = Resource("/api/v1", "secrets")
EVENTS = Resource("/api/v1", "events")
STATEFUL_SETS = Resource("/apis/apps/v1", "statefulsets")
LEASES = Resource("/apis/coordination.k8s.io/v1", "leases")
DISRUPTION_BUDGETS = Resource("/apis/policy/v1", "poddisruptionbudgets")
