"""What the JVM says of a failure, in a line."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError


def innermost(error: Py4JJavaError) -> str:
    """The innermost words, without the trace."""
    link = error.java_exception
    while (cause := link.getCause()) is not None:
        link = cause
    return f"{link.getClass().getSimpleName()}: {link.getMessage() or ''}"[:300]
