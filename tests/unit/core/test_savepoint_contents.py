"""What a savepoint says of itself: what it holds, where it lies, who may reach it."""

from __future__ import annotations

import pytest

from headrace.api import StreamJobSpec, StreamSavepointStatus
from headrace.core.savepoint_access import access_of
from headrace.core.savepoint_contents import in_words, place_of, size_text, with_contents
from tests.unit.core.savepoint_plans import (
    PATH,
)


def test_what_had_no_room_in_the_status_is_said() -> None:
    query = {"name": "q", "lineage": "l", "batch": 7}
    told = {"queries": [query], "more_queries": 3, "offsets_left_out": ["q"]}
    status = with_contents(StreamSavepointStatus(), told)
    assert (status.more_queries, status.offsets_left_out, status.batch) == (3, ("q",), None)
    assert "and 3 more queries that its manifest names" in in_words(status)
    many = with_contents(
        StreamSavepointStatus(), {"queries": [{**query, "name": f"q{n}"} for n in range(70)]}
    )
    assert (len(many.queries), many.more_queries) == (64, 6)


def test_what_reaches_the_store_is_kept_without_any_value_of_a_variable() -> None:
    spec = StreamJobSpec.parse(
        {
            "application": {"file": "job.py", "args": ["--password=x"]},
            "checkpoint": {"s3": {"credentials": {"secret": "keys"}}},
            "driver": {"env": [{"name": "A", "value": "geheim"}], "memory": "4Gi"},
            "imagePullSecrets": [{"name": "registry"}],
        }
    )
    assert access_of(spec) == {
        "checkpoint": {"s3": {"credentials": {"secret": "keys"}}},
        "imagePullSecrets": [{"name": "registry"}],
    }


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (PATH, ("s3://streams/ckpt/shop/clicks", "_savepoints/nightly-0a1b2c3d")),
        ("s3://backup/of/nightly", ("s3://backup/of", "nightly")),
    ],
)
def test_where_a_savepoint_lies(path: str, place: tuple[str, str]) -> None:
    assert place_of(path) == place


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (1023, "1023"), (1536, "1.5Ki"), (20 * 2**20, "20Mi"), (1300 * 2**30, "1.3Ti")],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_keeper_of_another_version_may_tell_less() -> None:
    status = StreamSavepointStatus()
    assert with_contents(status, None) == status
    assert with_contents(status, {"queries": []}).bytes is None
