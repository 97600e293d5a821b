"""The operator asks a keeper how far it is: the real page, the real client."""

import asyncio
import socket

import aiohttp
import pytest

from headrace.kube.keeper_progress import HttpKeepers
from headrace_jobs.keeper.progress import telling_progress
from headrace_jobs.store.savepoints import Progress

OWNER = "0a1b2c3d-4444"


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def asked(port: int, *, owner: str = OWNER) -> int | None:
    async def ask() -> int | None:
        async with aiohttp.ClientSession() as session:
            return await HttpKeepers(session, port).copied_percent("127.0.0.1", owner=owner)

    return asyncio.run(ask())


def done(copied: int, whole: int) -> Progress:
    return Progress(objects_done=1, objects=2, bytes_done=copied, bytes=whole)


def test_it_tells_how_far_it_is_while_it_copies(port: int):
    with telling_progress(port, owner=OWNER) as tell:
        assert asked(port) is None  # nothing is known yet
        tell(done(299, 1000))
        assert asked(port) == 29
        tell(done(1000, 1000))
        assert asked(port) == 100
        assert asked(port, owner="another") is None
    assert asked(port) is None


def test_a_port_that_is_taken_stops_no_copy(port: int):
    with socket.create_server(("", port)), telling_progress(port, owner=OWNER) as tell:
        tell(done(1, 2))
