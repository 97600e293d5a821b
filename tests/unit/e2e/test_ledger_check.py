"""The checker of the exactly-once tests finds what it is there to find."""

from dataclasses import replace

import pytest

from tests.e2e.ledger_check import Content, Noted, Row, Verdict, Window, judge

# A record each 100 ms, of one key: 50 in a window. The last is at 24.9 s, so what ends by 14.9 s is closed.
RECORDS = [{"i": number, "key": "k0", "at_ms": number * 100} for number in range(250)]
FIRST = Row(Window(0, "k0"), Content(50, sum(range(50))))
SECOND = Row(Window(5_000, "k0"), Content(50, sum(range(50, 100))))
LEDGER = [Noted("lineage", batch, epoch=1 + batch // 2, written_at=float(batch)) for batch in range(4)]


def verdict(*rows: Row, records: list[dict[str, object]] | None = None, ledger: list[Noted] | None = None):
    return judge(records or RECORDS, rows, LEDGER if ledger is None else ledger)


def test_exact():
    assert verdict(FIRST, SECOND) == Verdict((), lost_or_repeated=0, records=250, windows=2)


def test_a_record_that_was_sent_again_counts_once():
    assert verdict(FIRST, SECOND, records=[*RECORDS, RECORDS[7], RECORDS[80]])


@pytest.mark.parametrize(
    ("rows", "wrong", "problem"),
    [
        ([FIRST], 50, "Window(begins_ms=5000, key='k0') is not there"),
        ([FIRST, SECOND, SECOND], 50, "Window(begins_ms=5000, key='k0') is there 2 times"),
        (
            [FIRST, replace(SECOND, content=Content(49, 3725))],
            1,
            "Window(begins_ms=5000, key='k0') holds Content(n=49, total=3725), not Content(n=50, total=3725)",
        ),
        (
            [FIRST, SECOND, Row(Window(10_000, "k0"), Content(50, 6225))],
            50,
            "Window(begins_ms=10000, key='k0') was not closed yet",
        ),
    ],
)
def test_what_is_wrong_is_said_and_counted(rows: list[Row], wrong: int, problem: str):
    found = verdict(*rows)
    assert found.problems == (problem,)
    assert found.lost_or_repeated == wrong
    assert not found


def test_a_topic_that_lacks_a_number_proves_nothing():
    found = verdict(FIRST, SECOND, records=[one for one in RECORDS if one["i"] != 249 and one["i"] != 120])
    assert found.problems == ("the topic lacks 1 numbers, 120 first",)


def test_a_batch_that_the_ledger_lacks():
    found = verdict(FIRST, SECOND, ledger=[one for one in LEDGER if one.batch != 2])
    assert found.problems == ("the batches of lineage do not follow each other: [0, 1, 3]",)


def test_an_older_driver_that_wrote_after_a_newer_one():
    found = verdict(FIRST, SECOND, ledger=[*LEDGER, Noted("lineage", 4, epoch=1, written_at=4.0)])
    assert found.problems == ("an older driver wrote after a newer one: [1, 1, 2, 2, 1]",)
