"""Which files belong to a query's logs: by their place in its checkpoint, not by what a user calls things."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.checkpoint.jvmfiles import DRAINED, JvmFiles, refused
from tests.spark.checkpoint.places import Place


@pytest.fixture
def files(every_place: Place, request: pytest.FixtureRequest) -> Iterator[JvmFiles]:
    gateway: Any = request.getfixturevalue("s3_gateway" if every_place.uri.startswith("s3a:") else "gateway")
    files = JvmFiles(gateway, every_place)
    yield files
    files.control.resume()


def test_a_drain_does_not_cut_a_file_sink_whose_output_is_called_sources(files: JvmFiles) -> None:
    """Its log entry ends a batch: refused, the files are written and the batch is not."""
    assert files.control.drain(1000)
    for output in ("out/sources", "run-1/queries/q/sources"):
        files.create(f"{output}/_spark_metadata/7")
    for query in ("q", "sources"):
        with refused(DRAINED):
            files.create(f"run-1/queries/{query}/sources/0/7")


def test_a_query_called_sources_is_asked_about_like_any_other(files: JvmFiles) -> None:
    state = "run-1/queries/sources/state/0"
    files.create(f"{state}/0/1.changelog")
    manager = files.manager("run-1/queries/sources")
    assert manager.exists(files.path(state))
    manager.delete(files.path(state))
    assert files.place.files() == []
