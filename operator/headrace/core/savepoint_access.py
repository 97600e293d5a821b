"""Of a job's spec, what reaches its store: kept with a savepoint, which may outlive the job.

Only what names a place, an account or a Secret. Variables with a value of their own stay where they are.
"""

from __future__ import annotations

from typing import Any, cast

from headrace.api import StreamJobSpec

_DRIVER = (
    "serviceAccount",
    "labels",
    "annotations",
    "nodeSelector",
    "tolerations",
    "affinity",
    "priorityClassName",
    "schedulerName",
    "podSecurityContext",
    "securityContext",
    "volumes",
    "volumeMounts",
    "envFrom",
)


def access_of(spec: StreamJobSpec) -> dict[str, Any]:
    whole = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    driver: dict[str, Any] = whole.get("driver") or {}
    env = cast(list[dict[str, Any]], driver.get("env") or [])
    kept = {key: driver[key] for key in _DRIVER if key in driver}
    if references := [one for one in env if one.get("valueFrom")]:
        kept["env"] = references
    parts = {key: whole[key] for key in ("checkpoint", "imagePullSecrets") if key in whole}
    return {**parts, **({"driver": kept} if kept else {})}


def spec_with_access(access: dict[str, Any]) -> StreamJobSpec:
    """A spec for keepers, of a job that is gone. Nothing else is ever made of it."""
    return StreamJobSpec.parse({"application": {"file": "gone.py"}, **access})
