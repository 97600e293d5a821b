"""What the JVM says of a failure."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError

_LONGEST_CHAIN = 20


def innermost(error: Py4JJavaError) -> str:
    """The innermost words, without the trace."""
    link = error.java_exception
    while (cause := link.getCause()) is not None:
        link = cause
    return f"{link.getClass().getSimpleName()}: {link.getMessage() or ''}"[:300]


def java_throwable_in(error: BaseException | None) -> Any | None:
    """What the JVM threw, where a Python exception is about that, or was raised because of it."""
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            break
        # py4j's own exception has the one attribute, those that pyspark makes of it have the other.
        thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        if thrown is not None:
            return thrown
        error = error.__cause__ or error.__context__
    return None
