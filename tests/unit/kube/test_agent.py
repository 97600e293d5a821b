"""The client of the agent, against the real agent of the harness."""

import asyncio
import socket
from collections.abc import Iterator

import aiohttp
import pytest

from headrace.kube.agent import AgentAddress, AgentTokens, HttpAgents
from headrace_jobs.harness.agent import Agent, Served

TOKENS = AgentTokens(b"a key of the operator")
UID = "job-r1-a1"


REPORT = {"phase": "Running", "queries": [{"name": "q", "active": True}]}


@pytest.fixture
def limits() -> list[tuple[float | None, bool]]:
    """How long drains may take, as the agent was told."""
    return []


@pytest.fixture
def said() -> dict:
    """What the agent says of itself."""
    return {"report": REPORT}


@pytest.fixture
def port(said: dict, limits: list[tuple[float | None, bool]]) -> Iterator[int]:
    def drain(limit: float | None, snapshots_first: bool) -> dict:
        limits.append((limit, snapshots_first))
        return {"phase": "Draining"}

    def keep(news: dict) -> None:
        said["scaling"] = news

    served = Served(
        status=lambda: said["report"],
        drain=drain,
        metrics=lambda: b"",
        scaling=lambda: said.get("scaling"),
        keep_scaling=keep,
        activate=lambda _body: {},
    )
    listening = socket.create_server(("127.0.0.1", 0))
    agent = Agent(listening, token=TOKENS.of(UID), uid=UID, served=served)
    agent.start()
    yield listening.getsockname()[1]
    agent.close()


def asked(port: int, *, uid: str = UID, tokens: AgentTokens = TOKENS) -> tuple:
    async def ask() -> tuple:
        async with aiohttp.ClientSession() as session:
            agents = HttpAgents(session, tokens, port)
            address = AgentAddress("127.0.0.1", uid)
            return await agents.status(address), await agents.drain(
                address, timeout_seconds=90.5, snapshots_first=True
            )

    return asyncio.run(ask())


def test_the_right_token_and_uid_are_answered(port: int, limits: list[tuple[float | None, bool]]):
    assert asked(port) == (REPORT, True)
    assert limits == [(90.5, True)]


@pytest.mark.parametrize(
    "report",
    [
        {},
        [],
        {"phase": "Running"},
        {"phase": "OfTheFuture", "queries": []},
        {"phase": ["Running"], "queries": []},
        {"phase": "Running", "queries": {}},
        {"phase": "Running", "queries": ["q"]},
        {"phase": "Running", "queries": [{"name": "q"}]},
        {"phase": "Running", "queries": [{"name": 1, "active": True}]},
        {**REPORT, "more": "x" * 5_000_000},
    ],
)
def test_what_makes_no_sense_is_no_answer(port: int, said: dict, report):
    """It comes out of a container in which the user's code runs: no driver may bring the operator down."""
    said["report"] = report
    assert asked(port)[0] is None


def test_another_attempt_at_the_same_address_is_not_mistaken(port: int):
    assert asked(port, uid="job-r1-a2") == (None, False)


def test_a_wrong_key_is_no_answer(port: int):
    assert asked(port, tokens=AgentTokens(b"another key")) == (None, False)


def test_nobody_there_is_no_answer():
    assert asked(1) == (None, False)


def test_a_token_can_be_computed_again_and_belongs_to_one_attempt():
    assert TOKENS.of(UID) == AgentTokens(b"a key of the operator").of(UID)
    assert TOKENS.of(UID) != TOKENS.of("job-r1-a2")
