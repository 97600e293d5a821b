"""The agent's HTTP: who may ask what."""

import http.client
import json
import socket

import pytest

from headrace_jobs.harness.agent import Agent, Served
from headrace_jobs.harness.listening import family_of, listen
from headrace_jobs.harness.orders import NotInStandby, parse_order

TOKEN, UID = "s3cret", "attempt-1"
GOOD = {"Authorization": f"Bearer {TOKEN}", "X-Headrace-Uid": UID}


@pytest.fixture(scope="module")
def asked():
    return []


@pytest.fixture
def drains(asked):
    asked.clear()
    return asked


@pytest.fixture(scope="module")
def kept():
    return []


@pytest.fixture(scope="module")
def port(asked, kept):
    def drain(limit, snapshots_first):
        asked.append((limit, snapshots_first))
        return {"phase": "Draining"}

    served = Served(
        status=lambda: {"phase": "Running"},
        drain=drain,
        metrics=lambda: b"m 1\n",
        scaling=lambda: {"decisions": kept} if kept else None,
        keep_scaling=kept.append,
        activate=activate,
    )
    listening = listen("127.0.0.1", 0)
    agent = Agent(listening, token=TOKEN, uid=UID, served=served)
    agent.start()
    yield listening.getsockname()[1]
    agent.close()


def activate(body):
    order = parse_order(body)
    if order.run != 4:
        raise NotInStandby("the candidate is Rehearsing")
    return {"phase": "Activating"}


def call(port, method, path, headers, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body=body, headers=headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, text


@pytest.mark.parametrize(
    ("method", "path", "headers", "code"),
    [
        ("GET", "/healthz", {}, 200),
        ("GET", "/healthz?x=1", {}, 200),
        ("GET", "/v1/status", GOOD, 200),
        ("POST", "/v1/drain", GOOD, 202),
        ("POST", "/v1/drain?timeoutSeconds=0.5", GOOD, 202),
        ("POST", "/v1/drain?snapshots=maybe", GOOD, 400),
        ("POST", "/v1/drain?timeoutSeconds=soon", GOOD, 400),
        ("POST", "/v1/drain?timeoutSeconds=-1", GOOD, 400),
        ("POST", "/v1/drain?timeoutSeconds=nan", GOOD, 400),
        ("POST", "/v1/drain?timeoutSeconds=inf", GOOD, 400),
        ("GET", "/v1/scaling", GOOD, 503),
        ("GET", "/v1/scaling", {}, 401),
        ("POST", "/v1/scaling", GOOD, 400),
        ("POST", "/v1/scaling", GOOD | {"X-Headrace-Uid": "other"}, 409),
        ("GET", "/metrics", GOOD, 200),
        ("GET", "/metrics", {"Authorization": f"Bearer {TOKEN}"}, 200),
        ("GET", "/metrics", {}, 401),
        ("GET", "/metrics", GOOD | {"X-Headrace-Uid": "other"}, 409),
        ("GET", "/v1/status", {}, 401),
        ("GET", "/v1/status", {"X-Headrace-Uid": UID}, 401),
        ("GET", "/v1/status", GOOD | {"Authorization": "Bearer wrong"}, 401),
        ("GET", "/v1/status", GOOD | {"Authorization": TOKEN}, 401),
        ("GET", "/v1/status", GOOD | {"Authorization": "Bearer "}, 401),
        ("GET", "/v1/status", GOOD | {"Authorization": "Bearer wröng".encode()}, 401),
        ("GET", "/v1/status", {"Authorization": f"Bearer {TOKEN}"}, 409),
        ("POST", "/v1/drain", GOOD | {"X-Headrace-Uid": "attempt-0"}, 409),
        ("GET", "/v1/drain", GOOD, 405),
        ("POST", "/v1/status", GOOD, 405),
        ("POST", "/healthz", {}, 405),
        ("GET", "/v2/status", GOOD, 404),
        ("GET", "/v2/status", {}, 401),
    ],
)
def test_who_may_ask_what(port, drains, *, method, path, headers, code):
    status, text = call(port, method, path, headers)
    assert status == code
    if path != "/metrics" or code != 200:
        told = json.loads(text)
        assert code < 400 or set(told) == {"error", "message"}
    assert bool(drains) == (code == 202)


def test_a_drain_may_be_asked_for_again_and_a_body_does_no_harm(port, drains):
    for body in (None, b"{}", b"x" * 1000):
        assert call(port, "POST", "/v1/drain", GOOD, body)[0] == 202
    assert len(drains) == 3


def test_a_drain_may_be_given_a_limit(port, drains):
    for query in ("", "?timeoutSeconds=90", "?timeoutSeconds=0.5"):
        assert call(port, "POST", f"/v1/drain{query}", GOOD)[0] == 202
    assert drains == [(None, False), (90, False), (0.5, False)]


def test_a_drain_may_make_snapshots_first(port, drains):
    for query in ("?snapshots=true&timeoutSeconds=90", "?snapshots=false"):
        assert call(port, "POST", f"/v1/drain{query}", GOOD)[0] == 202
    assert drains == [(90, True), (None, False)]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b'{"run": 4, "attempt": 1, "epoch": 7}', 202, None),
        (b'{"run": 4, "attempt": 1, "epoch": 7, "acceptPending": true}', 202, None),
        (b'{"run": 5, "attempt": 1, "epoch": 7}', 409, "the candidate is Rehearsing"),
        (b"", 400, "the body is not JSON"),
        (b"[]", 400, "the body is not an object"),
        (b'{"run": 4, "attempt": 1}', 400, "epoch: None is not a whole number of at least 1"),
        (b'{"run": 4, "attempt": true, "epoch": 7}', 400, "attempt: True is not a whole number"),
        (b'{"run": 4, "attempt": 0, "epoch": 7}', 400, "attempt: 0 is not a whole number of at least 1"),
        (b'{"run": 4, "attempt": 1, "epoch": 7, "force": true}', 400, "unknown: force"),
        (b'{"run": 4, "attempt": 1, "epoch": 7, "acceptPending": 1}', 400, "acceptPending: 1 is not"),
    ],
)
def test_an_order_to_activate_is_read_strictly(port, body, status, message):
    code, text = call(port, "POST", "/v1/activate", GOOD, body)
    assert code == status
    assert message is None or message in json.loads(text)["message"]
    assert call(port, "GET", "/v1/activate", GOOD)[0] == 405


def test_one_connection_serves_many_calls(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(3):
        connection.request("POST", "/v1/drain", body=b"{}", headers=GOOD)
        response = connection.getresponse()
        assert response.status == 202
        response.read()
    connection.close()


def test_a_fault_of_ours_is_an_answer_too():
    def broken():
        raise RuntimeError("oh")

    served = Served(
        status=broken,
        drain=lambda _limit: {},
        metrics=lambda: b"",
        scaling=lambda: None,
        keep_scaling=lambda _news: None,
        activate=lambda _body: {},
    )
    listening = listen("127.0.0.1", 0)
    agent = Agent(listening, token=TOKEN, uid=UID, served=served)
    agent.start()
    port = listening.getsockname()[1]
    status, text = call(port, "GET", "/v1/status", GOOD)
    agent.close()
    assert status == 500
    assert json.loads(text)["message"] == "see the driver's log"


@pytest.mark.parametrize(
    ("host", "family"),
    [
        ("127.0.0.1", socket.AF_INET),
        ("0.0.0.0", socket.AF_INET),
        ("::", socket.AF_INET6),
        ("fd00::7", socket.AF_INET6),
    ],
)
def test_the_address_may_be_of_either_family(host, family):
    assert family_of(host) is family


def test_what_the_autoscaler_leaves_is_handed_back(port, kept):
    code, _ = call(port, "POST", "/v1/scaling", GOOD, body=json.dumps({"memory": 1}))
    assert (code, kept) == (202, [{"memory": 1}])
    code, text = call(port, "GET", "/v1/scaling", GOOD)
    assert (code, json.loads(text)) == (200, {"decisions": [{"memory": 1}]})
    kept.clear()
