"""The cluster as commands see it: objects in and out, and every refusal in words that help."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from headrace.api import GROUP
from headrace.api.guesses import nearest_name
from headrace.kube.errors import Denied, NotFound, Unavailable, from_answer
from headrace.kube.resources import STREAM_JOBS, STREAM_SAVEPOINTS, Resource

Object = dict[str, Any]

FIELD_MANAGER = "kubectl-streamjob"
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"
_CHUNK = "500"


class ClusterProblem(Exception):
    """Nothing that a command could work around; the message is for the user, with the way out."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: Object


@dataclass(frozen=True)
class Ran:
    """A command that was run in a container."""

    code: int
    output: str
    errors: str


class Transport(Protocol):
    """HTTP to one API server, as one user."""

    def request(
        self, method: str, path: str, *, query: Mapping[str, str], body: Object | None, content_type: str
    ) -> Answer: ...

    def lines(self, path: str, *, query: Mapping[str, str]) -> Iterator[str]:
        """The lines of an answer as they come. Raises the errors of `from_answer`."""
        ...

    def run(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> Ran:
        """A command in a container, to its end. Raises the errors of `from_answer`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One API server, and the namespace that is meant where none is named."""

    transport: Transport
    namespace: str
    # Look at all namespaces where a command lists.
    everywhere: bool = False
    # How people call it: the name of the context.
    name: str = ""

    # ---- reading ------------------------------------------------------------------------------------

    def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        return self._call("get", "GET", resource, name, namespace=namespace)

    def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object | None:
        """None where there is none, and where the user may not know."""
        try:
            return self.get(resource, name, namespace=namespace)
        except (NotFound, Forbidden):
            return None

    def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        everywhere: bool | None = None,
        selector: str | None = None,
        fields: str | None = None,
    ) -> list[Object]:
        place = (
            None if (self.everywhere if everywhere is None else everywhere) else namespace or self.namespace
        )
        chosen = {"labelSelector": selector, "fieldSelector": fields, "limit": _CHUNK}
        query = {key: value for key, value in chosen.items() if value is not None}
        items: list[Object] = []
        while True:
            page = self._send("list", "GET", resource, resource.path(place), place, query=query)
            items += page["items"]
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return items
            query = {**query, "continue": following}

    # ---- writing ------------------------------------------------------------------------------------

    def create(self, resource: Resource, body: Object, *, namespace: str | None = None) -> Object:
        place = namespace or self.namespace
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        return self._send("create", "POST", resource, resource.path(place), place, query=query, body=body)

    def patch(self, resource: Resource, name: str, body: Object, *, namespace: str | None = None) -> Object:
        """A merge patch: only what it names changes."""
        return self._call(
            "patch",
            "PATCH",
            resource,
            name,
            namespace=namespace,
            query={"fieldManager": FIELD_MANAGER},
            body=body,
            content_type=_MERGE_PATCH,
        )

    def delete(self, resource: Resource, name: str, *, namespace: str | None = None) -> None:
        self._call("delete", "DELETE", resource, name, namespace=namespace)

    def try_apply(self, resource: Resource, body: Object, *, namespace: str | None = None) -> Object:
        """What a server-side apply would answer, admission included; nothing is kept."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict", "dryRun": "All"}
        return self._call(
            "patch",
            "PATCH",
            resource,
            body["metadata"]["name"],
            namespace=namespace,
            query=query,
            body=body,
            content_type=_APPLY_PATCH,
        )

    # ---- in its pods --------------------------------------------------------------------------------

    def run(self, pod: str, container: str, command: Sequence[str], *, namespace: str | None = None) -> Ran:
        place = namespace or self.namespace
        try:
            return self.transport.run(place, pod, container, command)
        except Denied as error:
            raise ClusterProblem(
                f"you may not run commands in the pod {pod} in namespace {place}.\n"
                "Whoever gives rights there can bind the ClusterRole edit.\n"
                f"Check with: kubectl auth can-i create pods/exec -n {place}\nThe server says: {error}"
            ) from None

    # ---- inside -------------------------------------------------------------------------------------

    def _call(
        self,
        verb: str,
        method: str,
        resource: Resource,
        name: str,
        *,
        namespace: str | None,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = _JSON,
    ) -> Object:
        place = namespace or self.namespace
        return self._send(
            verb,
            method,
            resource,
            resource.path(place, name),
            place,
            query=query,
            body=body,
            content_type=content_type,
        )

    def _send(
        self,
        verb: str,
        method: str,
        resource: Resource,
        path: str,
        place: str | None,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = _JSON,
    ) -> Object:
        answer = self.transport.request(method, path, query=query or {}, body=body, content_type=content_type)
        if 200 <= answer.status < 300:
            return answer.body
        raise self.explained(answer, verb=verb, resource=resource, place=place)

    def explained(self, answer: Answer, *, verb: str, resource: Resource, place: str | None) -> Exception:
        """What a refusal means: errors that commands act upon, or the last word to the user."""
        error = from_answer(answer.status, answer.body)
        server = f" ({self.name})" if self.name else ""
        if answer.status == 401:
            return ClusterProblem(f"the cluster{server} does not know you: log in again")
        if isinstance(error, Denied) and error.reason == "Forbidden":
            return Forbidden(verb, resource, place, str(error))
        if isinstance(error, NotFound) and answer.body.get("kind") != "Status":
            return ClusterProblem(
                f"the cluster{server} has no {resource.plural}: Headrace is not installed there. "
                "See docs/how-to/install.md, or choose another cluster with --context"
            )
        if isinstance(error, Unavailable):
            return ClusterProblem(
                f"the cluster{server} does not answer: {error}. Try again, or choose another with --context"
            )
        return error

    def in_namespace(self, namespace: str) -> Cluster:
        return replace(self, namespace=namespace, everywhere=False)


class Forbidden(ClusterProblem):
    """Missing rights: names the verb and the resource, and whom to ask for what."""

    def __init__(self, verb: str, resource: Resource, place: str | None, detail: str) -> None:
        group = f".{GROUP}" if resource in (STREAM_JOBS, STREAM_SAVEPOINTS) else ""
        what = f"{resource.plural}{group}"
        where = f"in namespace {place}" if place is not None else "in all namespaces"
        flag = f"-n {place}" if place is not None else "-A"
        role = "view" if verb in ("get", "list", "watch") else "edit"
        super().__init__(
            f"you may not {verb} {what} {where}.\n"
            f"Whoever gives rights there can bind the ClusterRole {role}: Headrace adds its kinds to it.\n"
            f"Check with: kubectl auth can-i {verb} {what} {flag}\n"
            f"The server says: {detail}"
        )
        self.verb, self.resource = verb, resource


def no_such(cluster: Cluster, resource: Resource, kind: str, name: str) -> ClusterProblem:
    """There is no such object; but maybe one that was meant."""
    message = f"there is no {kind} {name} in namespace {cluster.namespace}"
    here = _names(cluster, resource, everywhere=False)
    if (near := nearest_name(name, [found for _, found in here])) is not None:
        return ClusterProblem(f"{message}. Did you mean {near}?")
    elsewhere = [place for place, found in _names(cluster, resource, everywhere=True) if found == name]
    if elsewhere:
        return ClusterProblem(f"{message}. There is one in {elsewhere[0]}: say -n {elsewhere[0]}")
    if not here:
        return ClusterProblem(f"{message}, nor any other. All namespaces: kubectl streamjob list -A")
    return ClusterProblem(f"{message}. There are: {', '.join(found for _, found in here[:10])}")


def _names(cluster: Cluster, resource: Resource, *, everywhere: bool) -> list[tuple[str, str]]:
    try:
        found = cluster.list(resource, everywhere=everywhere)
    except ClusterProblem:
        return []
    return [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found]


def parsed(content: bytes) -> Object:
    """The body of an answer: JSON, or whatever a proxy in between says."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"message": content[:500].decode(errors="replace").strip()}
