"""Cron times: fields, days, and clocks that leap."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.schedule import UnknownTimeZone, nearest_zone, next_time, zone_problem


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(cron: str, after: str, count: int, zone: str | None = None) -> list[str]:
    """As the clock of the zone shows them, with the offset where it matters."""
    moment, found = at(after), []
    for _ in range(count):
        following = next_time(cron, zone, moment)
        assert following is not None
        assert following.tzinfo is UTC
        moment = following
        found.append(f"{moment.astimezone(ZoneInfo(zone or 'UTC')):%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 * * * *", "2026-01-01 10:00:00", ["01-01 11:00", "01-01 12:00"]),
        ("0 * * * *", "2026-01-01 10:59:59", ["01-01 11:00"]),
        ("*/20 * * * *", "2026-01-01 10:01:00", ["01-01 10:20", "01-01 10:40", "01-01 11:00"]),
        ("5/20 9 * * *", "2026-01-01 00:00:00", ["01-01 09:05", "01-01 09:25", "01-01 09:45", "01-02 09:05"]),
        ("10-20/5 9 * * *", "2026-01-01 00:00:00", ["01-01 09:10", "01-01 09:15", "01-01 09:20"]),
        ("0 6,18 * * *", "2026-01-01 06:00:00", ["01-01 18:00", "01-02 06:00"]),
        ("30 23-1 * * *", "2026-01-01 12:00:00", ["01-01 23:30", "01-02 00:30", "01-02 01:30"]),
        ("0 0 31 * *", "2026-01-31 00:00:00", ["03-31 00:00", "05-31 00:00"]),
        ("0 0 1 JAN,JUL *", "2026-01-01 00:00:00", ["07-01 00:00", "01-01 00:00"]),
        ("0 0 * * MON-FRI", "2026-01-02 00:00:00", ["01-05 00:00", "01-06 00:00"]),
        (
            "0 0 * * FRI-MON",
            "2026-01-05 12:00:00",
            ["01-09 00:00", "01-10 00:00", "01-11 00:00", "01-12 00:00"],
        ),
        ("0 0 * * 7", "2026-01-01 00:00:00", ["01-04 00:00", "01-11 00:00"]),
        ("0 0 * * 0", "2026-01-01 00:00:00", ["01-04 00:00", "01-11 00:00"]),
        ("0 0 * * 5-7", "2026-01-05 00:00:00", ["01-09 00:00", "01-10 00:00", "01-11 00:00", "01-16 00:00"]),
        ("0 0 * * 0-7", "2026-01-05 00:00:00", ["01-06 00:00", "01-07 00:00", "01-08 00:00"]),
        ("0 0 * * */2", "2026-01-04 00:00:00", ["01-06 00:00", "01-08 00:00", "01-10 00:00", "01-11 00:00"]),
        # Both days given: either will do. With a star in front: both must.
        ("0 0 13 * FRI", "2026-02-01 00:00:00", ["02-06 00:00", "02-13 00:00", "02-20 00:00"]),
        ("0 0 10 * FRI", "2026-02-07 00:00:00", ["02-10 00:00", "02-13 00:00"]),
        ("0 0 */2 * FRI", "2026-02-01 00:00:00", ["02-13 00:00", "02-27 00:00"]),
    ],
)
def test_the_fields(cron: str, after: str, expected: list[str]):
    assert times(cron, after, len(expected)) == expected


def test_a_leap_day_is_found_over_a_century_without_one():
    assert next_time("0 0 29 2 *", None, at("2096-03-01 00:00")) == at("2104-02-29 00:00")


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "* * 30 FEB *", "0 0 31 4,6,9,11 *"])
def test_a_day_that_never_comes_has_no_next_time(cron: str):
    assert next_time(cron, "Europe/Berlin", at("2026-01-01 00:00")) is None


# Berlin 2026: 29 March 02:00 -> 03:00, 25 October 03:00 -> 02:00.
@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        # Passed over: right after the leap, once, and not twice with a time that comes then anyway.
        ("30 2 * * *", "2026-03-28 00:00", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        ("30 2,3 * * *", "2026-03-28 12:00", ["03-29 01:00", "03-29 01:30", "03-30 00:30"]),
        ("0,30 2 * * *", "2026-03-28 12:00", ["03-29 01:00", "03-30 00:00"]),
        # Shown twice: the first time.
        ("30 2 * * *", "2026-10-24 12:00", ["10-25 00:30", "10-26 01:30"]),
        # An interval: whenever the clock shows it, and nothing is made up for.
        ("0 * * * *", "2026-03-29 00:00", ["03-29 01:00", "03-29 02:00"]),
        ("0 * * * *", "2026-10-24 23:30", ["10-25 00:00", "10-25 01:00", "10-25 02:00"]),
        ("*/30 2 * * *", "2026-10-24 12:00", ["10-25 00:00", "10-25 00:30", "10-25 01:00", "10-25 01:30"]),
        ("*/30 2 * * *", "2026-03-28 12:00", ["03-30 00:00"]),
    ],
)
def test_a_clock_that_leaps(cron: str, after: str, expected: list[str]):
    moment, found = at(after), []
    for _ in expected:
        moment = next_time(cron, "Europe/Berlin", moment)
        assert moment is not None
        found.append(f"{moment:%m-%d %H:%M}")
    assert found == expected


def test_a_leap_of_half_an_hour():
    # Lord Howe: 4 October 2026, 02:00 (+10:30) -> 02:30 (+11:00).
    assert times("15 2 * * *", "2026-10-02 16:00", 3, "Australia/Lord_Howe") == [
        "10-04 02:30",
        "10-05 02:15",
        "10-06 02:15",
    ]


def test_a_leap_at_midnight_keeps_the_day():
    # Santiago: 6 September 2026, 00:00 -> 01:00.
    assert times("0 0 * * *", "2026-09-05 12:00", 2, "America/Santiago") == ["09-06 01:00", "09-07 00:00"]
    assert times("*/30 * 6 9 *", "2026-09-05 12:00", 1, "America/Santiago") == ["09-06 01:00"]


def test_a_day_that_a_country_left_out():
    # Samoa had no 30 December 2011.
    assert times("0 6 * * *", "2011-12-29 20:00", 3, "Pacific/Apia") == [
        "12-31 00:00",
        "12-31 06:00",
        "01-01 06:00",
    ]


def test_a_zone_shifts_the_day():
    assert next_time("0 1 * * MON", "Asia/Tokyo", at("2026-01-01 00:00")) == at("2026-01-04 16:00")


@given(
    cron=st.sampled_from(
        ["0 * * * *", "*/7 * * * *", "30 1,2,3 * * *", "15 2 * * SUN", "0 0 1 * *", "59 23 31 * 1-5"]
    ),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago"]),
    after=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_there_is_nothing_between_a_moment_and_the_next_time(cron: str, zone: str, after: datetime):
    """Asked from any moment in between, the answer is the same: the status does not flap."""
    moment = after.replace(tzinfo=UTC)
    found = [moment]
    for _ in range(4):
        following = next_time(cron, zone, found[-1])
        assert following is not None
        found.append(following)
    for before, following in pairwise(found):
        assert before < following
        assert following.second == 0
        assert next_time(cron, zone, before + (following - before) / 2) == following
        assert next_time(cron, zone, following - timedelta(seconds=1)) == following


def test_an_unknown_zone_is_named_with_the_one_that_was_meant():
    with pytest.raises(UnknownTimeZone):
        next_time("0 0 * * *", "Europe/Berln", at("2026-01-01 00:00"))
    assert zone_problem(None) is None
    assert zone_problem("Europe/Berlin") is None
    assert zone_problem("Europe/berlin") == (
        "there is no time zone Europe/berlin in the IANA database: did you mean Europe/Berlin?"
    )
    assert nearest_zone("Berlin") == "Europe/Berlin"
    # A directory of the database, and nothing near.
    assert zone_problem("Europe") is not None
    assert "such as Europe/Berlin" in (zone_problem("Atlantis") or "")
