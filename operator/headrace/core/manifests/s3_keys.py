"""`checkpoint.s3.credentials`: the keys of its Secret as files, in every pod that reaches the store.

Not as variables: those stay as they were when the pod began, and files are swapped when the Secret changes.
"""

from __future__ import annotations

from headrace.api import StreamJobSpec
from headrace.core.manifests.ownership import Manifest
from headrace.core.manifests.places import S3_KEYS

_VOLUME = "s3-keys"
# Which field of the manifest the volume comes from: the kubelet knows the volume only.
KEYS_VOLUME_FIELDS = {_VOLUME: "spec.checkpoint.s3.credentials"}


def has_keys(spec: StreamJobSpec) -> bool:
    return spec.checkpoint.s3 is not None and spec.checkpoint.s3.credentials is not None


def keys_volumes(spec: StreamJobSpec, *, optional: bool = False) -> list[Manifest]:
    """Without its Secret a driver waits, and goes on by itself when there is one. Where it is optional the
    container begins and says itself what is missing."""
    keys = spec.checkpoint.s3.credentials if spec.checkpoint.s3 is not None else None
    if keys is None:
        return []
    # Under names of our own, so that the keys of the Secret may be called anything.
    files = {
        "access_key_id": keys.access_key_id,
        "secret_access_key": keys.secret_access_key,
        "session_token": keys.session_token,
    }
    items = [{"key": key, "path": file} for file, key in files.items() if key is not None]
    source: Manifest = {"secretName": keys.secret, "items": items}
    return [{"name": _VOLUME, "secret": {**source, "optional": True} if optional else source}]


def keys_mounts(spec: StreamJobSpec) -> list[Manifest]:
    mount: Manifest = {"name": _VOLUME, "mountPath": S3_KEYS, "readOnly": True}
    return [mount] if has_keys(spec) else []
