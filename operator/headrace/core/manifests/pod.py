"""What driver and executor pods share: the manifest's pod settings over Headrace's restricted ones."""

from __future__ import annotations

from typing import Any, cast

from headrace.api.model import ApiModel
from headrace.api.pods import PodSettings
from headrace.core.manifests.ownership import Manifest
from headrace.core.manifests.places import WORK

# The "restricted" Pod Security standard, and a root file system that nobody can write to.
_POD_SECURITY: Manifest = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY: Manifest = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}

_SCRATCH_MOUNTS: list[Manifest] = [
    {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 (the pod's own)
    {"name": "work", "mountPath": WORK},
]


def scratch(name: str, settings: PodSettings) -> Manifest:
    """Bounded: else one pod could fill the disk of its node, and its neighbours would be evicted with it."""
    return {"name": name, "emptyDir": {"sizeLimit": str(settings.scratch_limit)}}


def pod_spec(settings: PodSettings, container: Manifest, *, volumes: list[Manifest]) -> Manifest:
    spec: Manifest = {
        "containers": [container],
        "enableServiceLinks": False,
        "securityContext": merged(_POD_SECURITY, settings.pod_security_context or {}),
        "volumes": [scratch("tmp", settings), scratch("work", settings), *volumes, *_plain(settings.volumes)],
        "nodeSelector": settings.node_selector,
        "tolerations": _plain(settings.tolerations),
        "affinity": settings.affinity,
        "priorityClassName": settings.priority_class_name,
        "schedulerName": settings.scheduler_name,
    }
    return without_empty(spec)


def container(
    settings: PodSettings,
    *,
    name: str,
    env: list[Manifest],
    mounts: list[Manifest],
    more: Manifest,
) -> Manifest:
    """The user's variables come last: Kubernetes lets the last of two namesakes win."""
    return without_empty(
        {
            "name": name,
            "workingDir": WORK,
            "env": [{"name": "HOME", "value": WORK}, *env, *_plain(settings.env)],
            "envFrom": _plain(settings.env_from),
            "volumeMounts": [*_SCRATCH_MOUNTS, *mounts, *_plain(settings.volume_mounts)],
            "securityContext": merged(CONTAINER_SECURITY, settings.security_context or {}),
            **more,
        }
    )


def patched(pod: Manifest, settings: PodSettings) -> Manifest:
    """The manifest's way out, applied last."""
    return merged(pod, settings.patch or {})


def merged(base: Manifest, patch: Manifest) -> Manifest:
    """A JSON merge patch (RFC 7386): maps are merged, null removes, anything else replaces."""
    result = dict(base)
    for key, value in patch.items():
        below = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(
                cast(Manifest, below) if isinstance(below, dict) else {}, cast(Manifest, value)
            )
        else:
            result[key] = value
    return result


def without_empty(manifest: Manifest) -> Manifest:
    """Golden files and `kubectl get -o yaml` show what is meant, not what is not."""
    return {key: value for key, value in manifest.items() if value not in (None, {}, [], ())}


def _plain(models: tuple[ApiModel, ...]) -> list[Any]:
    return [model.to_manifest() for model in models]
