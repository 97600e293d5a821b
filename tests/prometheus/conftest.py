"""A real Prometheus for the tests of this folder, its promtool, and Helm. All kept in the cache."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cluster import binaries, prometheus
from tests.cluster.console import MissingError

T = TypeVar("T")


def _or_say_what_is_missing(get: Callable[[], T]) -> T:
    try:
        return get()
    except MissingError as missing:
        pytest.exit(str(missing), returncode=2)


@pytest.fixture(scope="session")
def promtool() -> Path:
    return _or_say_what_is_missing(prometheus.ensure).promtool


@pytest.fixture(scope="session")
def helm() -> Path:
    return _or_say_what_is_missing(lambda: binaries.ensure(("helm",)))["helm"]
