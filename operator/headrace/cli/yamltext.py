"""YAML with places: every value knows where it stands in the text, and every mistake comes with a fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from headrace.api.edits import Path
from headrace.cli.yamlfixes import Mistake, Span, TextFix, tried_fix


@dataclass(frozen=True)
class Place:
    """Where a value stands, and its key if it has one."""

    value: Span
    key: Span | None = None
    is_scalar: bool = True


@dataclass(frozen=True)
class Document:
    """One document of a YAML text."""

    data: Any
    places: dict[Path, Place]
    span: Span


@dataclass(frozen=True)
class TextProblem:
    """A mistake in the text itself, before it means anything."""

    span: Span
    message: str
    fix: TextFix


def read_documents(text: str, badness: Callable[[str], float]) -> list[Document] | list[TextProblem]:
    """The documents of a text, or the mistakes in it.

    `badness` says how far a text is from a good manifest: of several ways to mend it the best is offered.
    """
    documents, mistakes = scan(text)
    if not mistakes:
        return documents
    fixes = [tried_fix(text, mistake, scan_mistakes, badness) for mistake in mistakes]
    return [_explained(mistake, fix, text) for mistake, fix in zip(mistakes, fixes, strict=True)]


def _explained(mistake: Mistake, fix: TextFix, text: str) -> TextProblem:
    if fix.diagnosis is None:
        return TextProblem(mistake.span, mistake.message, fix)
    edit = fix.edits[0]
    line = text[edit.start : edit.end]
    indent = len(line) - len(line.lstrip())
    return TextProblem(Span(edit.start + indent, edit.end), fix.diagnosis, fix)


def scan_mistakes(text: str) -> list[Mistake]:
    return scan(text)[1]


def scan(text: str) -> tuple[list[Document], list[Mistake]]:
    """Everything that can be read of a text, and every mistake; a syntax error ends the reading."""
    documents: list[Document] = []
    mistakes: list[Mistake] = []
    loader = None
    try:
        loader = _Loader(text)
        while loader.check_node() and (node := loader.get_node()) is not None:
            reading = _Reading(loader, mistakes)
            data = reading.data_of(node, ())
            documents.append(Document(data, reading.places, _span(node)))
    except yaml.MarkedYAMLError as error:
        mistakes.append(_syntax_mistake(error, text))
    except yaml.reader.ReaderError as error:
        at = min(int(error.position), len(text))
        mistakes.append(Mistake(Span(at, at + 1), "a character that YAML does not allow", kind="character"))
    finally:
        if loader is not None:
            loader.dispose()
    return documents, mistakes


class _Loader(yaml.SafeLoader):
    """YAML as kubectl reads it: no dates, no base-60 numbers."""


_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|\.[0-9][0-9_]*([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
        r"|\.(inf|Inf|INF))$|\.(nan|NaN|NAN)$"
    ),
}

_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, _NUMBERS.get(tag, pattern))
        for tag, pattern in resolvers
        if not tag.endswith((":timestamp", ":value"))
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Reading:
    """Turns the nodes of one document into data, noting where everything stands."""

    def __init__(self, loader: _Loader, mistakes: list[Mistake]) -> None:
        self._loader, self._mistakes = loader, mistakes
        self._open: list[Node] = []
        self._read: list[Node] = []
        self.places: dict[Path, Place] = {}

    def data_of(self, node: Node, path: Path, key: Span | None = None) -> Any:
        # An alias is the node of its anchor, which stands elsewhere: its key is the better place.
        is_alias = any(node is earlier for earlier in self._read)
        span = key if is_alias and key is not None else _span(node)
        self.places[path] = Place(span, key, isinstance(node, ScalarNode))
        if any(node is outer for outer in self._open):
            self._mistakes.append(Mistake(span, "an alias that contains itself", kind="alias"))
            return None
        self._read.append(node)
        self._open.append(node)
        try:
            match node:
                case MappingNode():
                    return self._mapping(node, path)
                case SequenceNode():
                    return [self.data_of(item, (*path, index)) for index, item in enumerate(node.value)]
                case _:
                    return self._scalar(node)
        finally:
            self._open.pop()

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged |= self._merged(value_node, path)
                continue
            name = str(self._scalar(key_node)) if isinstance(key_node, ScalarNode) else "?"
            if name in data:
                span = Span(_span(key_node).start, _span(value_node).end)
                self._mistakes.append(Mistake(span, f"{name} is there twice", kind="repeated"))
                continue
            data[name] = self.data_of(value_node, (*path, name), _span(key_node))
        return {**merged, **data}

    def _merged(self, node: Node, path: Path) -> dict[str, Any]:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in reversed(parts):
            merged |= self._mapping(part, path) if isinstance(part, MappingNode) else {}
        return merged

    def _scalar(self, node: Node) -> Any:
        tag = node.tag.rpartition(":")[2]
        if tag not in ("str", "int", "float", "bool", "null"):
            self._mistakes.append(Mistake(_span(node), f"the tag {node.tag} means nothing here", kind="tag"))
            return None
        try:
            return self._loader.construct_object(node)
        except (ValueError, yaml.YAMLError):
            return node.value


def _span(node: Node) -> Span:
    return Span(node.start_mark.index, max(node.end_mark.index, node.start_mark.index + 1))


_EXPLANATIONS = (
    ("'\\t'", "a tab: YAML is indented with spaces"),
    ("mapping values are not allowed", "a ':' where none can be: quote the value, or look at the line above"),
    ("could not find expected ':'", "no ':' after a key"),
    ("expected <block end>", "indented differently from the lines it belongs to"),
    ("expected ',' or", "a { or [ that is not closed, or a missing comma"),
    ("unexpected end of stream", "a quote that is not closed"),
    ("cannot start any token", "a character that needs quotes around the value"),
    ("undefined alias", "an alias without its anchor: quote the value if the * belongs to it"),
)


def _syntax_mistake(error: yaml.MarkedYAMLError, text: str) -> Mistake:
    problem = error.problem or "not YAML"
    message = next((words for pattern, words in _EXPLANATIONS if pattern in problem), f"not YAML: {problem}")
    at = error.problem_mark.index if error.problem_mark else len(text)
    began = error.context_mark.index if error.context_mark else at
    # Past the end there is nothing to point at; what was left open is the better place.
    shown_at = began if at >= len(text.rstrip()) else at
    return Mistake(Span(shown_at, shown_at + 1), message, kind="syntax", lines_of=(at, began))
