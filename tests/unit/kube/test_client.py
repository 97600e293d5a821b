"""The client against a server that speaks HTTP: retries, preconditions, pages, and what refusals become."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from headrace.kube.client import KubeClient, Retries, Snapshot, merge_difference, status_patch
from headrace.kube.credentials import Credentials, open_session
from headrace.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Denied,
    Gone,
    Invalid,
    NotFound,
    Unavailable,
    from_answer,
)
from headrace.kube.resources import LEASES, PODS, STREAM_JOBS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def run(handler: Handler, use: Callable[[KubeClient], Awaitable[object]], **options: object) -> object:
    async def session_with_server() -> object:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        async with TestServer(application) as server, aiohttp.ClientSession() as session:
            client = KubeClient(
                session=session, server=str(server.make_url("")).rstrip("/"), sleep=_no_sleep, **options
            )
            return await use(client)

    return asyncio.run(session_with_server())


async def _no_sleep(_seconds: float) -> None:
    await asyncio.sleep(0)


def answering(*answers: tuple[int, dict]) -> tuple[Handler, list[web.Request]]:
    requests: list[web.Request] = []
    left = list(answers)

    async def handler(request: web.Request) -> web.Response:
        await request.read()
        requests.append(request)
        status, body = left.pop(0) if len(left) > 1 else left[0]
        return web.json_response(body, status=status)

    return handler, requests


def test_paths_of_the_api():
    assert PODS.path("shop", "x") == "/api/v1/namespaces/shop/pods/x"
    assert STREAM_JOBS.path(None) == "/apis/headrace.dev/v1alpha1/streamjobs"
    assert LEASES.path("a", "b", "status") == "/apis/coordination.k8s.io/v1/namespaces/a/leases/b/status"


def test_a_list_comes_in_pages():
    pages = [
        (200, {"metadata": {"continue": "next", "resourceVersion": "7"}, "items": [{"n": 1}]}),
        (200, {"metadata": {"resourceVersion": "7"}, "items": [{"n": 2}]}),
    ]
    handler, requests = answering(*pages)
    found = run(handler, lambda client: client.list(PODS, "shop", selector="a=b", fields="c=d"))
    assert found == Snapshot([{"n": 1}, {"n": 2}], 7)
    assert [request.query.get("continue") for request in requests] == [None, "next"]
    assert {request.query["labelSelector"] for request in requests} == {"a=b"}
    assert {request.query["fieldSelector"] for request in requests} == {"c=d"}


def test_a_page_that_is_too_old_makes_it_list_all_at_once():
    handler, requests = answering(
        (200, {"metadata": {"continue": "next"}, "items": [{"n": 1}]}),
        (410, {"reason": "Expired"}),
        (200, {"metadata": {"resourceVersion": "8"}, "items": [{"n": 1}, {"n": 2}]}),
    )
    assert len(run(handler, lambda client: client.list(PODS, None)).items) == 2
    assert "limit" not in requests[-1].query


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_again(status: int):
    handler, requests = answering((status, {}), (status, {}), (200, {"fine": True}))
    assert run(handler, lambda client: client.get(PODS, "shop", "x")) == {"fine": True}
    assert len(requests) == 3


def test_patience_ends():
    handler, requests = answering((503, {"message": "no endpoints"}))
    with pytest.raises(Unavailable, match="no endpoints"):
        run(handler, lambda client: client.get(PODS, "shop", "x"), retries=Retries(attempts=3))
    assert len(requests) == 3


def test_a_broken_connection_is_tried_again():
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.path)
        if len(seen) == 1:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"fine": True})

    assert run(handler, lambda client: client.get(PODS, "shop", "x")) == {"fine": True}
    assert len(seen) == 2


def test_a_server_that_says_how_long_to_wait_is_obeyed():
    waits: list[float] = []

    async def handler(_request: web.Request) -> web.Response:
        if waits:
            return web.json_response({"fine": True})
        return web.json_response({"message": "slow down"}, status=429, headers={"Retry-After": "7"})

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    assert run(handler, lambda client: replace(client, sleep=sleep).get(PODS, "shop", "x")) == {"fine": True}
    assert len(waits) == 1 and waits[0] >= 7


def test_who_may_not_ask_any_more_does_not_ask_again():
    """It may have waited for an answer until another leads."""
    handler, requests = answering((503, {"message": "no endpoints"}))
    with pytest.raises(Unavailable, match="no endpoints"):
        run(handler, lambda client: client.create(PODS, "shop", {}), may_retry=lambda: False)
    assert len(requests) == 1


def test_waits_double_up_to_a_limit_and_obey_the_server():
    retries = Retries(first_seconds=1, longest_seconds=4)
    assert [retries.wait(n, retry_after=None, chance=1) for n in (1, 2, 3, 4)] == [1, 2, 4, 4]
    assert retries.wait(1, retry_after=None, chance=0) == 0.5
    assert retries.wait(1, retry_after=7, chance=0) == 7


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, {}, NotFound),
        (409, {"reason": "AlreadyExists"}, AlreadyExists),
        (409, {"reason": "Conflict"}, Conflict),
        (410, {}, Gone),
        (422, {}, Invalid),
        (403, {"message": 'pods "x" is forbidden: exceeded quota: small'}, Denied),
        (400, {"message": 'admission webhook "policy" denied the request: no'}, Denied),
        (400, {"message": "bad"}, ApiError),
        (500, {}, Unavailable),
    ],
)
def test_refusals_have_types(status: int, body: dict, kind: type):
    assert type(from_answer(status, body)) is kind


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('pods "x" is forbidden: exceeded quota: small, requested: pods=1', "QuotaExceeded"),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest"', "PodSecurity"),
        ('admission webhook "policy" denied the request', "AdmissionDenied"),
        ('pods is forbidden: User "y" cannot create', "Forbidden"),
    ],
)
def test_denials_have_reasons(message: str, reason: str):
    assert Denied(message).reason == reason


def test_a_delete_means_the_object_that_was_seen():
    bodies: list[dict] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        return web.json_response({})

    run(handler, lambda client: client.delete(PODS, "shop", "x", uid="u", grace_seconds=0))
    assert bodies == [
        {"preconditions": {"uid": "u"}, "propagationPolicy": "Background", "gracePeriodSeconds": 0}
    ]


def test_an_apply_is_forced_under_our_name():
    handler, requests = answering((200, {}))
    run(handler, lambda client: client.apply(PODS, "shop", {"metadata": {"name": "x"}}))
    (request,) = requests
    assert (request.method, request.query["force"], request.query["fieldManager"]) == (
        "PATCH",
        "true",
        "headrace",
    )
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"


def test_every_request_is_observed():
    seen: list[tuple] = []
    handler, _ = answering((503, {}), (200, {}))
    run(
        handler,
        lambda client: client.get(PODS, "shop", "x"),
        observe=lambda verb, resource, status, seconds: seen.append((verb, resource, status, seconds >= 0)),
    )
    assert seen == [("get", "pods", 503, True), ("get", "pods", 200, True)]


def test_the_token_is_read_anew_for_each_request():
    tokens = iter(["Bearer first", "Bearer second"])
    handler, requests = answering((200, {}))

    async def use() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        async with TestServer(application) as server:
            credentials = Credentials(str(server.make_url("")).rstrip("/"), None, lambda: next(tokens))
            async with open_session(credentials) as session:
                client = KubeClient(session=session, server=credentials.server)
                await client.get(PODS, "shop", "x")
                await client.get(PODS, "shop", "x")

    asyncio.run(use())
    assert [request.headers["Authorization"] for request in requests] == ["Bearer first", "Bearer second"]


def test_a_status_is_patched_with_what_differs_and_the_version_that_was_read():
    before = {
        "metadata": {"resourceVersion": "7"},
        "status": {"state": "Starting", "gone": 1, "run": {"number": 1, "image": "x"}, "conditions": [1]},
    }
    after = {"state": "Running", "run": {"number": 1}, "conditions": [1]}
    assert status_patch(before, after) == {
        "metadata": {"resourceVersion": "7"},
        "status": {"state": "Running", "gone": None, "run": {"image": None}},
    }
    assert status_patch({**before, "status": after}, json.loads(json.dumps(after))) is None
    assert merge_difference({}, {"a": {"b": 1}}) == {"a": {"b": 1}}
