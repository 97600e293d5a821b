"""Digests: of what a run runs (the spec fields that need a new run, and the code), of a policy."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from headrace.api import StreamJobSpec
from headrace.core.changes import fields_that_need_a_run


def revision_of(spec: StreamJobSpec, code_digest: str) -> str:
    return _digest({"spec": fields_that_need_a_run(spec), "code": code_digest})


def policy_of(spec: StreamJobSpec) -> str:
    """How the spec wants to be upgraded."""
    return _digest(spec.upgrade.model_dump(mode="json"))


def _digest(wanted: Any) -> str:
    canonical = json.dumps(wanted, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
