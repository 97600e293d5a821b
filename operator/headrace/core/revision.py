"""The digest of what a run runs: the spec fields that need a new run, and the code."""

from __future__ import annotations

import hashlib
import json

from headrace.api import StreamJobSpec
from headrace.core.changes import fields_that_need_a_run


def revision_of(spec: StreamJobSpec, code_digest: str) -> str:
    wanted = {"spec": fields_that_need_a_run(spec), "code": code_digest}
    canonical = json.dumps(wanted, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
