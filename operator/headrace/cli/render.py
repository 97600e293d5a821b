"""Problems of a manifest for a person: the line, a caret under the fault, and the fix."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.api.edits import Fix
from headrace.api.secrets import MASK, sounds_secret
from headrace.cli.yamlfixes import Span, TextFix

_BOLD, _RED, _GREEN, _OFF = "\033[1m", "\033[31m", "\033[32m", "\033[0m"
_WIDEST = 120


@dataclass(frozen=True)
class PlacedProblem:
    """A problem and where it stands. Lines and columns count from 1."""

    field: str
    message: str
    fix: Fix | TextFix
    line: int
    column: int
    length: int
    value: str = ""
    document: int = 0


def render(problem: PlacedProblem, text: str, *, name: str = "manifest.yaml", color: bool = False) -> str:
    """Like a good compiler. `text` must be masked already: its line is shown."""
    bold, red, green, off = (_BOLD, _RED, _GREEN, _OFF) if color else ("", "", "", "")
    where = f"{bold}{name}:{problem.line}:{off} " + (f"{bold}{problem.field}:{off} " if problem.field else "")
    lines = text.splitlines()
    parts = [f"{where}{problem.message}"]
    if problem.line <= len(lines):
        number, line = str(problem.line), lines[problem.line - 1].replace("\t", " ")
        cut = f"{line[:_WIDEST]}…" if len(line) > _WIDEST else line.rstrip()
        parts.append(f"  {number} | {cut}")
        if problem.column <= _WIDEST:
            # No further than what is seen: the caret must not tell the length of a masked secret.
            length = min(problem.length, len(cut) - problem.column + 1)
            caret = " " * (problem.column - 1) + red + "^" * max(length, 1) + off
            parts.append(f"  {' ' * len(number)} | {caret}")
    parts.append(f"  {green}fix:{off} {problem.fix.sentence}")
    return "\n".join(parts)


def position_of(span: Span, text: str) -> tuple[int, int, int]:
    """Line, column and length of a stretch of text; no further than its line goes."""
    start = min(span.start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    length = min(span.end, line_end) - start
    return text.count("\n", 0, start) + 1, start - line_start + 1, max(length, 1)


# ---- masking: a line that is shown may hold a secret besides the fault it is shown for

_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def masked(text: str, secrets: list[Span]) -> str:
    """The text with its secrets hidden and everything else where it was."""
    for span in secrets:
        hidden = "".join(_covered(part) for part in re.split(r"(\n)", text[span.start : span.end]))
        text = text[: span.start] + hidden + text[span.end :]
    return _USER_INFO.sub(lambda match: _covered(match[0]), text)


def masked_by_words(text: str) -> str:
    """The same for a text that cannot be read as YAML: whatever may belong to a secret word is hidden."""
    lines: list[str] = []
    hide_deeper_than: int | None = None
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if hide_deeper_than is not None and line.strip() and indent <= hide_deeper_than:
            hide_deeper_than = None
        if hide_deeper_than is not None:
            lines.append(line[:indent] + _covered(line[indent:]))
            continue
        lines.append(_with_hidden_value(line))
        if sounds_secret(line):
            # What follows deeper, or beside it as `value:`, may be the secret itself.
            hide_deeper_than = indent
    return _USER_INFO.sub(lambda match: _covered(match[0]), "\n".join(lines))


def _with_hidden_value(line: str) -> str:
    found = re.search(r"[\w.-]+", line)
    while found and not sounds_secret(found[0]):
        found = re.compile(r"[\w.-]+").search(line, found.end())
    if not found:
        return line
    value = re.compile(r"\s*[\"']?\s*[:=]?\s*").match(line, found.end())
    start = value.end() if value else found.end()
    return line[:start] + _covered(line[start:])


def _covered(hidden: str) -> str:
    return hidden if hidden == "\n" else MASK[: len(hidden)].ljust(len(hidden))
