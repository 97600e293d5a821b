"""The plugin, connected to a fake cluster."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli import connect
from headrace.cli.cluster import Cluster
from headrace.cli.kubectl import main
from tests.unit.cli.fakes import a_cluster


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster()


@pytest.fixture
def kubectl(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The plugin, connected to the fake cluster whatever the options say but for the namespace."""

    def connected(*, namespace=None, everywhere=False, **_: Any) -> Cluster:
        return replace(cluster, namespace=namespace or cluster.namespace, everywhere=everywhere)

    monkeypatch.setattr(connect, "connect", connected)

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False)

    return run
