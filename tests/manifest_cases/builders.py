"""Small builders of manifests, and what a case of the table says."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.api.edits import Path, Remove, SetValue, apply_edits

Manifest = dict[str, Any]


def a_job(**spec: Any) -> Manifest:
    """The smallest StreamJob, with these fields of its spec."""
    return {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamJob",
        "metadata": {"name": "orders"},
        "spec": {"application": {"file": "job.py"}, **copy.deepcopy(spec)},
    }


def a_savepoint(**spec: Any) -> Manifest:
    return {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamSavepoint",
        "metadata": {"name": "orders-1"},
        "spec": {"job": {"name": "orders"}, **copy.deepcopy(spec)},
    }


def without(manifest: Manifest, *path: str) -> Manifest:
    return apply_edits(manifest, [Remove(path)])


def having(manifest: Manifest, value: Any, *path: str | int) -> Manifest:
    return apply_edits(manifest, [SetValue(path, value)])


def spec(*path: str | int) -> Path:
    return ("spec", *path)


@dataclass(frozen=True)
class Bad:
    """One thing is wrong at `field`; its message contains `says`; the fix puts `becomes` into the manifest.

    `server` says what the API server does with it on its own, without Headrace: it refuses it, or it lets it
    pass (an unknown field, which it drops) and the command line tells the user.
    """

    name: str
    manifest: Any
    field: str
    says: str
    becomes: tuple[Path, Any] | None = None
    rule: str | None = None  # Model.method of the cross-field rule that it breaks
    server: Literal["refuses", "accepts"] = "refuses"


@dataclass(frozen=True)
class BadEdit:
    """An edit that is refused although the new manifest is good by itself."""

    name: str
    old: Manifest
    new: Manifest
    field: str
    rule: str
    old_status: Manifest = field(default_factory=dict)


@dataclass(frozen=True)
class BadText:
    """A file that cannot be read as a manifest: the problem is shown at `line` and contains `says`."""

    name: str
    text: str
    line: int
    says: str
