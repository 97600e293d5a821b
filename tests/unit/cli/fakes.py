"""A cluster for the commands: the fake API server of the simulations behind HTTP's words."""

import asyncio
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from click.testing import Result

from headrace.api import StreamJob, StreamJobSpec, StreamJobStatus
from headrace.cli.cluster import Answer, Cluster, Ran
from headrace.core.manifests import RunPin, run_pin
from headrace.kube.errors import AlreadyExists, ApiError, Conflict, Denied, Invalid, NotFound, from_answer
from headrace.kube.resources import (
    CONFIG_MAPS,
    EVENTS,
    PODS,
    STREAM_JOBS,
    STREAM_SAVEPOINTS,
    Resource,
)
from tests.sim.kube.fake_api import FakeApi

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
NAMESPACE = "shop"
RESOURCES = {
    one.plural: one
    for one in (STREAM_JOBS, STREAM_SAVEPOINTS, PODS, CONFIG_MAPS, EVENTS, Resource("/api/v1", "namespaces"))
}
_STATUSES = {NotFound: 404, AlreadyExists: 409, Conflict: 409, Invalid: 422, Denied: 403}

Object = dict[str, Any]
# The plugin, as the fixture `kubectl` runs it.
Run_ = Callable[..., Result]


@dataclass
class FakeTransport:
    api: FakeApi
    # (verb, plural) that are forbidden.
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    # Kinds that the cluster does not know.
    unknown: set[str] = field(default_factory=set)
    # What a dry run answers, where it is not accepted.
    dry_run: Answer | None = None
    # Logs by pod: their lines, or an answer that is no log.
    logs: dict[str, list[str] | Answer] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    # What a command in a pod says, by the pod; an Answer refuses it.
    commands: dict[str, Ran | Answer] = field(default_factory=dict)

    def request(
        self, method: str, path: str, *, query: Mapping[str, str], body: Object | None, content_type: str
    ) -> Answer:
        resource, namespace, name, _ = _parts(path)
        verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(method) or (
            "get" if name else "list"
        )
        self.asked.append((verb, path))
        if resource.plural in self.unknown:
            return Answer(404, {"message": "404 page not found"})
        if (verb, resource.plural) in self.forbidden:
            text = f'{resource.plural} is forbidden: User "eve" cannot {verb} resource "{resource.plural}"'
            return Answer(403, {"kind": "Status", "reason": "Forbidden", "message": text})
        if "dryRun" in query:
            return self.dry_run or Answer(200, body or {})
        try:
            return Answer(
                200, asyncio.run(self._act(verb, resource, namespace, name, body=body, query=query))
            )
        except ApiError as error:
            status = _STATUSES.get(type(error), 500)
            reason = type(error).__name__
            return Answer(status, {"kind": "Status", "reason": reason, "message": str(error)})

    async def _act(self, verb, resource, namespace, name, *, body, query) -> Object:
        match verb:
            case "get":
                return await self.api.get(resource, namespace, name)
            case "list":
                found = (await self.api.list(resource, namespace)).items
                wanted = [one.split("=") for one in query.get("labelSelector", "").split(",") if one]
                chosen = [
                    one
                    for one in found
                    if all(one["metadata"].get("labels", {}).get(key) == value for key, value in wanted)
                ]
                return {"items": chosen, "metadata": {}}
            case "create":
                body = {**body, "metadata": {"namespace": namespace, **body["metadata"]}}
                return await self.api.create(resource, namespace, body)
            case "patch":
                return await self.api.patch(resource, namespace, name, body)
            case _:
                await self.api.delete(resource, namespace, name, uid=None)
                return {}

    def lines(self, path: str, *, query: Mapping[str, str]) -> Iterator[str]:
        _, namespace, name, subresource = _parts(path)
        if ("get", f"pods/{subresource}") in self.forbidden:
            raise Denied(f"{name} is forbidden", status=403)
        assert namespace
        found = self.logs.get(name or "")
        match found:
            case None:
                raise NotFound(f'pods "{name}" not found', status=404)
            case Answer():
                raise from_answer(found.status, found.body)
            case _:
                yield from found[-int(query["tailLines"]) :] if "tailLines" in query else found

    def run(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> Ran:
        self.asked.append(("run", f"{pod}/{container}: {' '.join(command)}"))
        match self.commands.get(pod):
            case None:
                raise NotFound(f'pods "{pod}" not found', status=404)
            case Answer() as refused:
                raise from_answer(refused.status, refused.body)
            case ran:
                return ran


def _parts(path: str) -> tuple[Resource, str | None, str | None, str | None]:
    parts = path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    namespace = None
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource, *_ = (*parts, None, None)
    return RESOURCES[plural or ""], namespace, name, subresource


def a_cluster(*, namespace: str = NAMESPACE, everywhere: bool = False) -> Cluster:
    transport = FakeTransport(FakeApi(now=lambda: NOW))
    return Cluster(transport=transport, namespace=namespace, everywhere=everywhere, name="test")


def add_job(
    cluster: Cluster,
    name: str = "clicks",
    *,
    namespace: str = NAMESPACE,
    status: StreamJobStatus | None = None,
    generation: int = 1,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    body = a_manifest(name, **spec)
    body["metadata"]["namespace"] = namespace
    if annotations:
        body["metadata"]["annotations"] = annotations
    api_of(cluster).put_new(STREAM_JOBS, body)
    change: Object = {"metadata": {"generation": generation}}
    if status is not None:
        change["status"] = status.to_manifest()
    place = (STREAM_JOBS.plural, namespace, name)
    api_of(cluster).set(place, change)
    return copy.deepcopy(api_of(cluster).objects[place])


def a_manifest(name: str = "clicks", **spec: Any) -> Object:
    whole = {"application": {"file": "s3://acme/clicks.py"}, "image": "acme/clicks:1.4.2", **spec}
    manifest = {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamJob",
        "metadata": {"name": name},
        "spec": whole,
    }
    StreamJob.parse(manifest)
    return manifest


def api_of(cluster: Cluster) -> FakeApi:
    return transport_of(cluster).api


def transport_of(cluster: Cluster) -> FakeTransport:
    assert isinstance(cluster.transport, FakeTransport)
    return cluster.transport


def in_yaml(manifest: Object) -> str:
    """JSON is YAML."""
    return json.dumps(manifest)


def stored(cluster: Cluster, name: str = "clicks") -> dict[str, Any]:
    return api_of(cluster).objects[(STREAM_JOBS.plural, NAMESPACE, name)]


def pin(cluster: Cluster, job: dict[str, Any], *, run: int = 4, code: str = "spec", **spec: Any) -> None:
    """Keeps what a run was pinned with, as the operator does."""
    kept = RunPin(
        namespace=NAMESPACE,
        job=job["metadata"]["name"],
        job_uid=job["metadata"]["uid"],
        run=run,
        revision="abc",
        code_digest=code,
        spec=StreamJobSpec.parse(a_manifest(**spec)["spec"]),
        location="s3://acme",
    )
    api_of(cluster).put_new(CONFIG_MAPS, run_pin(kept))
