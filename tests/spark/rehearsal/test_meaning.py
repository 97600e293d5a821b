"""What a state means, read from real plans: which edits are the same, and how the others are told."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from headrace_jobs.harness.meaning import differences, meaning_from_json
from tests.spark.rehearsal.plans import HERE, THERE


def noted(unrelated_expressions: int):
    command = [sys.executable, "-m", "tests.spark.rehearsal.plans", str(unrelated_expressions)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def meanings():
    return noted(0)


def test_it_is_the_same_in_every_session(meanings):
    assert noted(7) == meanings


SAME = [
    ("sum", "sum, otherwise called"),
    ("sum", "sum, renamed on the way"),
    ("sum", "sum, filtered before"),
    ("sum", "sum, projected after"),
    ("sum", "sum, computed on"),
    ("sum", "sum in SQL"),
    ("with_function", "with_function_moved"),
    ("files", "files, by a url"),
]
DIFFERENT = [
    ("sum", "max", "sum(amount) became max(amount)"),
    ("sum", "sum of cents", "sum(amount) became sum(amount * 100)"),
    ("sum", "distinct sum", "sum(amount) became distinct sum(amount)"),
    ("sum", "sum by upper", "the key user became upper(user)"),
    ("sum", "sum then max", "max(amount) was added"),
    ("sum then max", "sum", "max(amount) is gone"),
    ("sum then max", "max then sum", "sum(amount) became max(amount)"),
    ("two keys", "two keys swapped", "the key user became shop"),
    ("first", "first that is there", "first(amount) is computed in another way"),
    ("window 1 m", "window 5 m", "the key window is computed in another way"),
    ("window 1 m", "window, later", "the delay 1 minutes became 9 minutes"),
    ("seen users", "seen shops", "the key user became shop"),
    ("joined", "joined_left", "the join type Inner became LeftOuter"),
    ("joined", "joined_otherwise", "the join condition user = user and at >= at became"),
    ("with_function", "with_function_changed", "sum(share(amount)) is computed in another way"),
    ("with_helper", "with_other_helper", "is computed in another way"),
    ("processor", "processor changed", "is computed in another way"),
    ("sum", "seen users", "its stateful operators were aggregate; they are deduplicate"),
    ("sum", "no state", "its stateful operators were aggregate; they are none"),
    ("files", "files elsewhere", f"its sources were files in {HERE}; they are files in {THERE}, and its off"),
    ("files and more", "more and files", "Spark knows them by their order"),
]


def compared(meanings, before, after, **changes):
    old, new = (meaning_from_json(meanings[name]) for name in (before, after))
    assert old is not None
    assert new is not None
    return differences("revenue", old, replace(new, **changes))


@pytest.mark.parametrize(("before", "after"), SAME)
def test_the_same(meanings, before, after):
    assert compared(meanings, before, after) == []


@pytest.mark.parametrize(("before", "after", "told"), DIFFERENT)
def test_something_else(meanings, before, after, told):
    found = compared(meanings, before, after)
    assert found, "taken for the same"
    assert all(one.startswith("query revenue: ") for one in found)
    assert told in found[0], found


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("sum", "max", True),
        ("window 1 m", "window 5 m", True),
        ("with_function", "with_function_changed", False),
        ("first", "first that is there", False),
    ],
)
def test_between_versions_only_what_all_of_them_write_alike_is_compared(meanings, before, after, told):
    assert bool(compared(meanings, before, after, spark_version="4.3")) is told
    assert bool(compared(meanings, before, after, python_version="3.14")) is told


def test_everything_is_the_same_as_itself(meanings):
    for name in meanings:
        assert compared(meanings, name, name) == []
        assert compared(meanings, name, name, spark_version="4.3") == []
