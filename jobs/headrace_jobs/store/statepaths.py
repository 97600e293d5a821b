"""The one kind of file in a checkpoint that names other files by full path, and what a copy does about it.

Operator metadata of transformWithState lists the files of its state's schema. A copy that still named those
of the original would lean on it in silence, and fail when it is gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from headrace_jobs.store.errors import SeedError

_NAMES_PATHS = re.compile(r"^[^/]+/state/[^/]+/_metadata/v2/\d+$")


def names_paths(key: str) -> bool:
    """`key` is relative to `queries/`."""
    return _NAMES_PATHS.match(key) is not None


def with_paths_moved(content: bytes, source_url: str, target_url: str) -> bytes:
    """The same metadata for a copy of the tree at `source_url` that lies at `target_url`.

    Spark writes file:/x for file:///x and s3a:// for s3://, so the paths are matched without scheme.
    """
    source, target = _without_scheme(source_url), _without_scheme(target_url)
    moved = content.decode().replace(f"{source}/", f"{target}/")
    for path in _schema_paths(moved):
        if f"{target}/" not in path:
            raise SeedError(
                f"the state schema {path} lies outside of the run: its checkpoint was moved by hand"
            )
    return moved.encode()


def _without_scheme(url: str) -> str:
    return url.partition("://")[2].rstrip("/")


def _schema_paths(text: str) -> Iterable[str]:
    _version, _, body = text.partition("\n")
    found: list[str] = []

    def walk(value: Any) -> None:
        match value:
            case {"stateSchemaFilePaths": [*paths], **rest}:
                found.extend(map(str, paths))
                walk(list(rest.values()))
            case dict():
                walk(list(value.values()))
            case list():
                for item in value:
                    walk(item)
            case str() if value.startswith("{"):
                walk(json.loads(value))

    walk(json.loads(body))
    return found
