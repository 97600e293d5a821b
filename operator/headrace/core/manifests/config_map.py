"""The ConfigMap of an attempt: run.json, the executors' template, code that the run pinned. No secrets."""

from __future__ import annotations

import json

from headrace.core.manifests.attempt import DriverAttempt, Manifest, Platform
from headrace.core.manifests.executor_template import executor_template
from headrace.core.manifests.places import EXECUTOR_TEMPLATE, RUN_FILE
from headrace.core.manifests.run_file import run_file


def config_map(attempt: DriverAttempt, platform: Platform) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": attempt.metadata("driver"),
        # What an attempt was told is evidence: nobody edits it later.
        "immutable": True,
        "data": {
            **{code_key(name): text for name, text in attempt.code.items()},
            RUN_FILE: _json(run_file(attempt, platform)),
            EXECUTOR_TEMPLATE: _json(executor_template(attempt, platform)),
        },
    }


def code_key(name: str) -> str:
    """A name of its own, so that an application called run.json cannot take the place of ours."""
    return f"code.{name}"


def _json(value: Manifest) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
