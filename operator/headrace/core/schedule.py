"""When a cron expression comes next, in a time zone with all its leaps. Pure: the zones are constants.

The expression has passed the API's form (`api/cron.py`): five fields of `*`, numbers, names, ranges, lists,
steps. The rest is as in Debian's cron:

  day        with day of month and weekday both given, either will do; `*` or `*/n` in one of them: both must
  clock      a time of day that a leap of the clock passes over comes right after the leap, and one that the
             clock shows twice comes once, the first time
             with a `*` in the hour or the minute it is an interval: whenever the clock shows it
  never      31 February has no next time: None
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as clock_time
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
# 29 February is at most eight years away.
_LONGEST_SEARCH = timedelta(days=9 * 366)
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NAMES = {name: number for number, name in enumerate(_MONTHS, 1)} | {
    name: number for number, name in enumerate(_WEEKDAYS)
}


class UnknownTimeZone(Exception):
    """The zone database has no such zone."""


@dataclass(frozen=True)
class _Cron:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    is_interval: bool

    def has_day(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (in_month or in_week if self.either_day else in_month and in_week)


def next_time(cron: str, zone: str | None, after: datetime) -> datetime | None:
    """The first time later than `after`, in UTC; None if there is none. Raises UnknownTimeZone."""
    parsed, place = _parsed(cron), _zone(zone) if zone is not None else UTC
    times = _intervals if parsed.is_interval else _times_of_day
    return next((moment for moment in times(parsed, place, after) if moment > after), None)


def zone_problem(name: str | None) -> str | None:
    """What is wrong with the name of a time zone, if anything: no schema can tell."""
    if name is None or _is_known(name):
        return None
    near = nearest_zone(name)
    meant = f"did you mean {near}?" if near is not None else "name one such as Europe/Berlin"
    return f"there is no time zone {name} in the IANA database: {meant}"


def nearest_zone(name: str) -> str | None:
    """The zone that was probably meant: other case, or the city alone."""
    zones = sorted(available_timezones())
    wanted = name.lower()
    whole = [zone for zone in zones if zone.lower() == wanted]
    city = [zone for zone in zones if zone.lower().rpartition("/")[2] == wanted.rpartition("/")[2]]
    return next(iter((*whole, *city)), None)


# ---- the expression


@lru_cache(maxsize=1024)
def _parsed(cron: str) -> _Cron:
    minute, hour, day, month, weekday = cron.split()
    fields = zip((minute, hour, day, month, weekday), _RANGES, strict=True)
    minutes, hours, days, months, weekdays = (_values(field, *bounds) for field, bounds in fields)
    return _Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either_day=not day.startswith("*") and not weekday.startswith("*"),
        is_interval=minute.startswith("*") or hour.startswith("*"),
    )


def _values(field: str, least: int, most: int) -> frozenset[int]:
    return frozenset(value for item in field.split(",") for value in _item(item, least, most))


def _item(item: str, least: int, most: int) -> Iterator[int]:
    span, _, step = item.partition("/")
    first, dash, last = span.partition("-")
    if span == "*":
        low, high = least, most
    else:
        low = _number(first)
        # `5/15` goes on to the end of the field.
        high = _number(last) if dash else (most if step else low)
    # FRI-MON and 22-2 go over the end of the week or the day; 7 is Sunday, too.
    period = most - least + 1
    length = high - low if high >= low else high - low + period
    for offset in range(0, length + 1, int(step or 1)):
        yield least + (low + offset - least) % period


def _number(text: str) -> int:
    return _NAMES[text] if text in _NAMES else int(text)


# ---- the clock


def _times_of_day(cron: _Cron, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """In order. From the day before: where the date line moved, a whole day is a leap."""
    clock = [clock_time(hour, minute) for hour in sorted(cron.hours) for minute in sorted(cron.minutes)]
    first = after.astimezone(zone).date() - _DAY
    for number in range(_LONGEST_SEARCH.days):
        day = first + number * _DAY
        if cron.has_day(day):
            yield from (_moment(datetime.combine(day, each), zone) for each in clock)


def _moment(shown: datetime, zone: tzinfo) -> datetime:
    """When the clock shows this for the first time, or leaps over it."""
    moment = shown.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None, fold=0) == shown:
        return moment
    # Never shown. Read with the offsets before and after the leap, it lies on both sides of it.
    before, later = shown.replace(tzinfo=zone, fold=1).astimezone(UTC), moment
    while later - before > timedelta(seconds=1):
        middle = before + (later - before) / 2
        if middle.astimezone(zone).utcoffset() == moment.astimezone(zone).utcoffset():
            later = middle
        else:
            before = middle
    return later.replace(microsecond=0)


def _intervals(cron: _Cron, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Whenever the clock shows one of the times, in order."""
    moment = after.astimezone(UTC).replace(second=0, microsecond=0)
    end = moment + _LONGEST_SEARCH
    while moment < end:
        shown = moment.astimezone(zone)
        if not cron.has_day(shown.date()):
            midnight = datetime.combine(shown.date() + _DAY, clock_time())
            moment = max(moment + _MINUTE, _moment(midnight, zone))
        elif shown.hour not in cron.hours:
            moment += (60 - shown.minute) * _MINUTE
        else:
            if shown.minute in cron.minutes:
                yield moment
            moment += _MINUTE


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise UnknownTimeZone(name) from None


def _is_known(name: str) -> bool:
    try:
        _zone(name)
    except UnknownTimeZone:
        return False
    return True
