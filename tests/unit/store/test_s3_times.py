"""Times as S3 servers write them: read quickly, and as botocore reads them."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.utils import parse_timestamp

from headrace_jobs.store import open_store
from headrace_jobs.store.s3_times import read_time


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-18T09:20:09.000Z",
        "2026-11-18T09:20:09Z",
        "2026-11-18T09:20:09.123456Z",
        "2026-11-18T09:20:09.123456789Z",
        "2026-11-18T10:20:09+01:00",
        "2026-11-18T09:20:09.1Z",
        "2026-11-18T09:20:09.12345Z",
        "Wed, 18 Nov 2026 09:20:09 GMT",
        "20261118T092009Z",
        1794993609,
        "1794993609",
    ],
)
def test_every_way_to_write_a_time_is_read_as_botocore_reads_it(written: Any) -> None:
    assert read_time(written) == parse_timestamp(written)


def test_what_is_no_time_is_refused_as_botocore_refuses_it() -> None:
    with pytest.raises(ValueError, match="Invalid timestamp"):
        read_time("yesterday at noon, or so")


def test_a_store_reads_its_listings_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = open_store("s3://bucket/place")._client  # type: ignore[attr-defined]
    parsers = client._endpoint._response_parser_factory
    assert parsers.create_parser("rest-xml")._timestamp_parser is read_time
