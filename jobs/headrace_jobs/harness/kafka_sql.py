"""`spec.kafka` for tables and views that SQL declares (`CREATE TABLE … USING kafka OPTIONS (…)`). Pure.

The options of such a table are in its statement, and Spark has no other place for them: so the statement gets
those that it leaves open, before Spark reads it. Only words outside of strings, names in quotes and comments
are looked at. What cannot be understood is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headrace_jobs.harness.kafka import is_kafka, names_other_brokers, options_to_add
from headrace_jobs.harness.runfile import Kafka

# In this order: a comment in a string is none, and a string in a comment neither.
_TOKEN = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/|\s+)
      |(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      |(?P<name>`(?:[^`]|``)*`)
      |(?P<word>[\w.]+)
      |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


def with_kafka(statement: str, kafka: Kafka) -> str:
    """The statement with the options that it leaves open, where it declares something that is Kafka's."""
    tokens = list(_tokens(statement))
    using = _using_kafka(tokens)
    if using is None:
        return statement
    begin = _options_begin(tokens, using)
    given = _options(tokens, begin) if begin is not None else {}
    if given is None or names_other_brokers(kafka, given):
        return statement
    added = ", ".join(
        f"{_literal(key)} {_literal(value)}" for key, value in options_to_add(kafka, given).items()
    )
    if not added:
        return statement
    if begin is None:
        place = tokens[using].end
        return f"{statement[:place]} OPTIONS ({added}){statement[place:]}"
    place = tokens[begin].end
    return f"{statement[:place]}{added}{', ' if given else ''}{statement[place:]}"


def _tokens(statement: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(statement):
        if found.lastgroup != "skip":
            yield _Token(str(found.lastgroup), found[0], found.start(), found.end())


def _using_kafka(tokens: list[_Token]) -> int | None:
    """Where the name of the source stands, in a statement that creates or replaces a table or a view."""
    if not tokens or not tokens[0].is_word("create", "replace"):
        return None
    for index, token in enumerate(tokens[:-1]):
        if token.is_word("as", "select"):
            return None  # what follows is a query
        if token.is_word("using"):
            source = tokens[index + 1]
            named = source.text.strip("`") if source.kind in ("word", "name") else None
            return index + 1 if is_kafka(named) else None
    return None


def _options_begin(tokens: list[_Token], after: int) -> int | None:
    """The bracket of the options, which stand anywhere among the clauses that follow."""
    for index in range(after + 1, len(tokens) - 1):
        if tokens[index].is_word("as", "select"):
            return None
        if tokens[index].is_word("options") and tokens[index + 1].text == "(":
            return index + 1
    return None


def _options(tokens: list[_Token], begin: int) -> dict[str, str] | None:
    """By names in small letters: `'kafka.x' 'y'`, `kafka.x = 'y'`, … None where they cannot be read."""
    found: dict[str, str] = {}
    entry: list[_Token] = []
    for token in tokens[begin + 1 :]:
        if token.text not in (",", ")"):
            entry.append(token)
            continue
        if entry:
            words = [one for one in entry if one.text != "="]
            if len(words) != 2 or words[1].kind not in ("text", "word"):
                return None
            key, value = (one.text.strip("'\"`") for one in words)
            found[key.lower()] = value
        if token.text == ")":
            return found
        entry = []
    return None


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
