"""Which Java exception is behind a Python one."""

from __future__ import annotations

import pytest

from headrace_jobs.harness.jvm_errors import java_throwable_in

THROWN = object()


class OfPy4J(Exception):
    java_exception = THROWN


class OfPySpark(Exception):
    _origin = THROWN


class WithoutOrigin(Exception):
    """pyspark's, where it was raised in Python."""

    _origin = None


def raised_from(cause: BaseException, *, explicitly: bool) -> BaseException:
    outer = RuntimeError("the job's own words")
    if explicitly:
        outer.__cause__ = cause
    else:
        outer.__context__ = cause
    return outer


@pytest.mark.parametrize(
    "error",
    [
        OfPy4J(),
        OfPySpark(),
        raised_from(OfPy4J(), explicitly=True),
        raised_from(OfPySpark(), explicitly=False),
        raised_from(raised_from(OfPy4J(), explicitly=True), explicitly=False),
    ],
    ids=["py4j", "pyspark", "from it", "on the way out of it", "far below"],
)
def test_it_is_found_below_what_the_job_made_of_it(error: BaseException) -> None:
    assert java_throwable_in(error) is THROWN


@pytest.mark.parametrize("error", [None, ValueError("x"), WithoutOrigin()], ids=["none", "python", "pyspark"])
def test_where_there_is_none(error: BaseException | None) -> None:
    assert java_throwable_in(error) is None


def test_a_ring_of_causes_has_an_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert java_throwable_in(one) is None
