"""Which names of files a source takes: its `pathGlobFilter`, as Hadoop reads it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

TakesName = Callable[[str], bool]


def names_like(pattern: str | None) -> TakesName:
    """Without a pattern every name. One that nobody can read takes every name, too: Spark refuses it."""
    if pattern is None:
        return lambda _: True
    try:
        found = re.compile(_as_regular_expression(pattern), re.DOTALL)
    except re.error:
        return lambda _: True
    return lambda name: found.fullmatch(name) is not None


def _as_regular_expression(pattern: str) -> str:
    """`*`, `?`, `[a-c]`, `[^a]`, `{a,b}` and `\\` before a character that is itself."""
    written, braces, index = "", 0, 0
    while index < len(pattern):
        letter = pattern[index]
        match letter:
            case "\\" if index + 1 < len(pattern):
                index += 1
                written += re.escape(pattern[index])
            case "*":
                written += ".*"
            case "?":
                written += "."
            case "{":
                braces += 1
                written += "(?:"
            case "," if braces:
                written += "|"
            case "}" if braces:
                braces -= 1
                written += ")"
            case "[" if "]" in pattern[index + 2 :]:
                end = pattern.index("]", index + 2)
                inner = pattern[index + 1 : end]
                negated = inner.startswith(("^", "!"))
                written += f"[{'^' if negated else ''}{_in_class(inner[negated:])}]"
                index = end
            case _:
                written += re.escape(letter)
        index += 1
    return written


def _in_class(letters: str) -> str:
    return letters.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
