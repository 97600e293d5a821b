"""Ways to mend a text that is not YAML. All are tried; the one that leads to the best manifest is offered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

_EXAMPLE = """\
apiVersion: headrace.dev/v1alpha1
kind: StreamJob
metadata:
  name: orders
spec:
  application:
    file: job.py
"""


@dataclass(frozen=True)
class Span:
    """A stretch of the text, by offsets."""

    start: int
    end: int


@dataclass(frozen=True)
class TextEdit:
    start: int
    end: int
    new: str = field(repr=False)


@dataclass(frozen=True)
class TextFix:
    """What to do about a mistake in the text: a sentence for a person, edits for a machine.

    A parser sees a mistake where it can go no further, often a line too late. The fix that works knows
    better: `diagnosis` then says what was wrong, where the fix is.
    """

    sentence: str
    edits: tuple[TextEdit, ...]
    diagnosis: str | None = None


@dataclass(frozen=True)
class Mistake:
    """A mistake in the text. `lines_of` are offsets whose lines are suspects, besides the span's own."""

    span: Span
    message: str
    kind: str
    lines_of: tuple[int, ...] = ()


def apply_text_edits(text: str, edits: Iterable[TextEdit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def start_anew(text: str, sentence: str = "start from an example: `headrace init` writes one") -> TextFix:
    return TextFix(sentence, (TextEdit(0, len(text), _EXAMPLE),))


def append_example(text: str) -> TextFix:
    separator = "---\n" if text.endswith("\n") else "\n---\n"
    return TextFix("add a StreamJob to it", (TextEdit(len(text), len(text), separator + _EXAMPLE),))


def tried_fix(
    text: str,
    mistake: Mistake,
    mistakes_in: Callable[[str], list[Mistake]],
    badness: Callable[[str], float],
) -> TextFix:
    """The proposal after which the text is YAML again and closest to a good manifest."""
    before = len(mistakes_in(text))
    readable: list[tuple[float, int, TextFix]] = []
    further: list[tuple[int, int, TextFix]] = []
    for order, fix in enumerate(_proposals(text, mistake)):
        fixed = apply_text_edits(text, fix.edits)
        left = mistakes_in(fixed)
        if not left or len(left) < before:
            readable.append((badness(fixed), order, fix))
        elif (unread := len(fixed) - _reached(left[0])) < len(text) - _reached(mistake):
            # The parser gets further, measured from the end: a fix may add characters.
            further.append((unread, order, fix))
    for found in (readable, further):
        if found:
            return min(found, key=lambda each: each[:2])[2]
    return start_anew(text)


def _reached(mistake: Mistake) -> int:
    """How far the parser got."""
    return max(mistake.span.start, *mistake.lines_of, 0)


def _proposals(text: str, mistake: Mistake) -> Iterator[TextFix]:
    match mistake.kind:
        case "repeated":
            yield from _without(text, mistake.span, "remove the second one")
        case "tag":
            tag = re.compile(r"!\S*\s*").match(text, mistake.span.start)
            if tag:
                yield TextFix("remove the tag", (TextEdit(tag.start(), tag.end(), ""),))
            yield from _without(text, mistake.span, "remove the line")
        case "alias":
            yield from _without(text, mistake.span, "remove the line")
        case "character":
            yield TextFix("remove the character", (TextEdit(mistake.span.start, mistake.span.end, ""),))
            clean = re.sub(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd]", "", text)
            yield TextFix("remove such characters", (TextEdit(0, len(text), clean),))
        case _:
            yield from _for_syntax(text, mistake)


def _without(text: str, span: Span, sentence: str) -> Iterator[TextFix]:
    """Without the whole lines, or, inside braces, without the entry and its comma."""
    start, end = _line_start(text, span.start), _line_end(text, max(span.end - 1, span.start))
    yield TextFix(sentence, (TextEdit(start, end, ""),))
    comma_after = re.compile(r"\s*,\s*").match(text, span.end)
    if comma_after:
        yield TextFix(sentence, (TextEdit(span.start, comma_after.end(), ""),))
    comma_before = re.search(r"\s*,\s*$", text[: span.start])
    if comma_before:
        yield TextFix(sentence, (TextEdit(comma_before.start(), span.end, ""),))


def _for_syntax(text: str, mistake: Mistake) -> Iterator[TextFix]:
    if "\t" in text:
        yield from _without_tabs(text)
    suspects = _suspects(text, mistake)
    for start, end in suspects:
        line = text[start:end].rstrip("\n")
        for diagnosis, sentence, new in (*_other_lines(line), *_other_indents(text, start, line)):
            if new != line:
                yield TextFix(sentence, (TextEdit(start, start + len(line), new),), diagnosis)
    for start, end in suspects:
        yield TextFix("remove the line", (TextEdit(start, end, ""),))


def _without_tabs(text: str) -> Iterator[TextFix]:
    for width in (2, 4, 8):
        spaced = re.sub(r"^[ \t]+", partial(_expanded, width=width), text, flags=re.MULTILINE)
        yield TextFix("write spaces instead of tabs", (TextEdit(0, len(text), spaced.replace("\t", " ")),))


def _expanded(indent: re.Match[str], *, width: int) -> str:
    return indent[0].expandtabs(width)


def _suspects(text: str, mistake: Mistake) -> list[tuple[int, int]]:
    """The lines that may be at fault: where the parser stopped, the one above, and where something opened."""
    suspects: dict[tuple[int, int], None] = {}
    for offset in (mistake.span.start, *mistake.lines_of):
        start = _line_start(text, min(offset, max(len(text) - 1, 0)))
        suspects[start, _line_end(text, start)] = None
        if start > 0:
            above = _line_start(text, start - 1)
            suspects[above, _line_end(text, above)] = None
    return list(suspects)


def _other_lines(line: str) -> Iterator[tuple[str, str, str]]:
    """What else a line could have been: what is wrong with it, what to do, and the line."""
    spaced = re.sub(r"^(\s*(?:- )?[\w.-]+):(?=\S)", r"\1: ", line)
    yield "no space after the ':'", "put a space after it", spaced
    for closers in _missing_closers(line):
        yield "a bracket or quote that is not closed", f"close it with {closers}", line + closers
    yield "a bracket that was not opened", "remove it", re.sub(r"\s*[\]}]+\s*$", "", line)
    if not line.rstrip().endswith(":"):
        yield "no ':' after the key", "put one at the end of the line", f"{line.rstrip()}:"
    keyed = re.match(r"^(\s*(?:- )?)([\w.-]+)\s+(\S.*)$", line)
    if keyed:
        yield "no ':' after the key", "put one there", f"{keyed[1]}{keyed[2]}: {keyed[3]}"
    entry = re.match(r"^(\s*(?:- )?(?:[\w.\"'-]+:\s+)?)(.+?)\s*$", line)
    if entry:
        key, value = entry[1], entry[2]
        bare = re.sub(r"^[@`%*&!|>\"']+", "", value)
        yield "a character with a meaning of its own in YAML", "remove it", f"{key}{bare}"
        quoted = value.strip("\"'").replace("'", "''")
        yield "a value that needs quotes", "put it in quotes", f"{key}'{quoted}'"


def _other_indents(text: str, start: int, line: str) -> Iterator[tuple[str, str, str]]:
    for indent in _indents_above(text, start):
        moved = " " * indent + line.lstrip()
        yield "indented differently from the lines it belongs to", f"indent it by {indent} spaces", moved


def _missing_closers(line: str) -> Iterator[str]:
    pairs = {"{": "}", "[": "]"}
    open_brackets = [pairs[character] for character in line if character in pairs]
    for character in line:
        if character in "}]" and character in open_brackets:
            open_brackets.remove(character)
    closers = "".join(reversed(open_brackets))
    for quote in ("", '"', "'"):
        if quote + closers and (not quote or line.count(quote) % 2):
            yield quote + closers


def _indents_above(text: str, start: int) -> list[int]:
    """The indentations of the lines above, nearest first, and one step deeper than each."""
    lines = [line for line in text[:start].splitlines() if line.strip()]
    found = [len(line) - len(line.lstrip(" ")) for line in reversed(lines[-12:])]
    return list(dict.fromkeys(indent + step for indent in found for step in (0, 2)))


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    """Just behind the end of the line."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1
