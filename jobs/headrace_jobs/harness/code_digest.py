"""A digest of what a Python function does: its code and that of the user's functions it calls. Pure.

Not part of it: where it stands (file, lines), comments, docstrings, and values. A value that is made when
the script began (a date, a table) differs from start to start, and would be taken for a change of the code.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

_MOST_FUNCTIONS = 500

Owns = Callable[[str], bool]
"""Whether a file is the user's own."""


def code_digest(function: Any, owns: Owns) -> str:
    told = hashlib.sha256()
    for part in _Visit(owns).visit(function):
        told.update(part.encode())
        told.update(b"\0")
    return told.hexdigest()[:16]


class _Visit:
    def __init__(self, owns: Owns) -> None:
        self._owns = owns
        self._seen: set[int] = set()

    def visit(self, value: Any, *, asked: bool = True) -> Iterator[str]:
        """`asked`: the function itself, whoever wrote it; what it leads to counts if it is the user's."""
        if id(value) in self._seen or len(self._seen) > _MOST_FUNCTIONS:
            return
        self._seen.add(id(value))
        match value:
            case types.FunctionType():
                if asked or self._owns(value.__code__.co_filename):
                    yield from self._function(value)
                else:
                    # A wrapper of a library: what it wraps may be the user's.
                    yield from self._leads_to(value)
            case types.MethodType():
                yield from self.visit(value.__func__, asked=asked)
                yield from self._instance(value.__self__)
            case type():
                yield from self._class(value)
            case functools.partial():
                yield from self.visit(value.func, asked=asked)
            case _:
                yield from self._instance(value)

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        yield from _code(function.__code__)
        yield from self._leads_to(function)

    def _leads_to(self, function: types.FunctionType) -> Iterator[str]:
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # not filled yet
            yield from self._if_code(content)
        for name in _names(function.__code__):
            if name in function.__globals__:
                yield from self._if_code(function.__globals__[name])

    def _if_code(self, value: Any) -> Iterator[str]:
        if isinstance(value, types.FunctionType | types.MethodType | type | functools.partial):
            yield from self.visit(value, asked=False)
        elif not isinstance(value, types.ModuleType):
            yield from self._instance(value)

    def _class(self, cls: type) -> Iterator[str]:
        if not self._is_own(cls):
            return
        yield cls.__name__
        for name, member in sorted(vars(cls).items()):
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if isinstance(function, types.FunctionType):
                yield name
                yield from self.visit(function, asked=False)

    def _instance(self, value: Any) -> Iterator[str]:
        """Of a class of the user's: its code. Of a library's: what it holds may be the user's."""
        cls = type(value)
        if cls.__module__ in ("builtins", "__builtin__"):
            return
        if self._is_own(cls):
            yield from self.visit(cls, asked=False)
        for held in sorted(getattr(value, "__dict__", {}).items(), key=lambda item: item[0]):
            if isinstance(held[1], types.FunctionType | types.MethodType) or self._is_own(type(held[1])):
                yield from self._if_code(held[1])

    def _is_own(self, cls: type) -> bool:
        module = sys.modules.get(cls.__module__)
        file = getattr(module, "__file__", None)
        return bool(file) and self._owns(file or "")


def _code(code: types.CodeType) -> Iterator[str]:
    """As instructions with their values: places in tables shift when a docstring comes or goes."""
    yield " ".join(code.co_varnames)
    for step in dis.get_instructions(code):
        if isinstance(step.argval, types.CodeType):
            yield from _code(step.argval)
        elif isinstance(step.argval, frozenset):
            yield f"{step.opname} {sorted(map(repr, step.argval))}"
        else:
            yield f"{step.opname} {step.argval!r}"


def _names(code: types.CodeType) -> list[str]:
    inner = [name for one in code.co_consts if isinstance(one, types.CodeType) for name in _names(one)]
    return [*code.co_names, *inner]
