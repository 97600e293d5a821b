"""Replaces methods of pyspark's classes, and puts them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Patches:
    """The replacements of one harness. Undone in tests only: a driver ends with its process."""

    def __init__(self) -> None:
        self._originals: list[tuple[type, str, Any]] = []

    def replace(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        """`make` gets the original and gives what takes its place."""
        original = owner.__dict__[name]
        replacement = make(original)
        if callable(original) and callable(replacement):
            replacement.__name__ = name
            replacement.__doc__ = original.__doc__
        setattr(owner, name, replacement)
        self._originals.append((owner, name, original))

    def undo(self) -> None:
        while self._originals:
            owner, name, original = self._originals.pop()
            setattr(owner, name, original)
