"""Durations, memory, cron: what is accepted, what it means, what is suggested."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.api.cron import CRON
from headrace.api.forms import Form
from headrace.api.quantities import DURATION, MEMORY, Duration, Memory, duration_text
from headrace.api.storage import LOCATION


@pytest.mark.parametrize(
    "text", ["s3://streams", "s3://streams/a/b", "file:///mnt/streams", "file:///home/jörg/my job/.headrace"]
)
def test_a_location(text: str):
    assert LOCATION.problem_with(text) is None


@pytest.mark.parametrize(
    "text",
    ["s3://streams/a b", "s3://streams/é?x", "file:///a%20b", "file:///a ", "file:// /a", "file:///a#b"],
)
def test_not_a_location(text: str):
    assert LOCATION.problem_with(text) is not None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("1h1s", 3601),
        ("168h", 604800),
        ("1m500ms", 60.5),
    ],
)
def test_a_duration_is_seconds(text: str, seconds: float):
    assert DURATION.problem_with(text) is None
    assert Duration(text).seconds == seconds


@pytest.mark.parametrize("text", ["", "5", "0s", "5 m", "1m1h", "-5s", "1d", "s", "5m\n", "1.5h"])
def test_not_a_duration(text: str):
    assert DURATION.problem_with(text) is not None


@given(st.integers(min_value=1, max_value=10**9))
def test_every_duration_can_be_written_and_read(milliseconds: int):
    text = duration_text(milliseconds / 1000)
    assert DURATION.problem_with(text) is None
    assert round(Duration(text).seconds * 1000) == milliseconds


@pytest.mark.parametrize(
    ("text", "size"), [("512Mi", 2**29), ("4Gi", 2**32), ("1.5Gi", 3 * 2**29), ("1G", 10**9), ("64k", 64000)]
)
def test_memory_is_bytes(text: str, size: int):
    assert MEMORY.problem_with(text) is None
    assert Memory(text).bytes == size


@pytest.mark.parametrize("text", ["4", "4GB", "4g", "0Gi", "Gi", "4 Gi", "-1Gi", "4gi"])
def test_not_memory(text: str):
    assert MEMORY.problem_with(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "0 * * * *",
        "*/15 0-6,22 * JAN-MAR,12 1-5",
        "59 23 31 12 7",
        "5,10 4 * * SUN",
        "0 0 1 1 *",
        "0-59/2 * * * *",
    ],
)
def test_a_cron_expression(text: str):
    assert CRON.problem_with(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * *",
        "* * * * * *",
        "@daily",
        "a b c d e",
    ],
)
def test_not_a_cron_expression(text: str):
    assert CRON.problem_with(text) is not None


@pytest.mark.parametrize("form", [DURATION, MEMORY, CRON], ids=["duration", "memory", "cron"])
@given(value=st.one_of(st.text(max_size=30), st.integers(), st.floats(), st.booleans(), st.none()))
def test_a_suggestion_always_has_the_form(form: Form, value: object):
    suggestion = form.suggestion(value)
    assert suggestion is None or form.problem_with(suggestion) is None


@pytest.mark.parametrize("form", [DURATION, MEMORY, CRON], ids=["duration", "memory", "cron"])
def test_an_example_has_its_own_form(form: Form):
    assert form.problem_with(form.example) is None
