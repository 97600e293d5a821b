"""`checkpoint.s3.ca`: a private authority, for the keeper (in PEM) and for the JVMs (as a trust store).

A JVM that is given a trust store reads no other, so it also holds the public authorities.
"""

from __future__ import annotations

from headrace.api import StreamJobSpec
from headrace.core.manifests.ownership import Manifest
from headrace.core.manifests.places import S3_CA, TRUST

TRUST_STORE = f"{TRUST}/authorities.jks"

_TRUST_VOLUME = "trust"
_CA_VOLUME = "s3-ca"


def has_ca(spec: StreamJobSpec) -> bool:
    return spec.checkpoint.s3 is not None and spec.checkpoint.s3.ca is not None


def ca_volumes(spec: StreamJobSpec) -> list[Manifest]:
    ca = spec.checkpoint.s3.ca if spec.checkpoint.s3 is not None else None
    if ca is None:
        return []
    items = [{"key": ca.key, "path": S3_CA.rpartition("/")[2]}]
    if ca.secret is not None:
        return [{"name": _CA_VOLUME, "secret": {"secretName": ca.secret, "items": items}}]
    return [{"name": _CA_VOLUME, "configMap": {"name": ca.config_map, "items": items}}]


def ca_mounts(spec: StreamJobSpec) -> list[Manifest]:
    directory = S3_CA.rpartition("/")[0]
    return [{"name": _CA_VOLUME, "mountPath": directory, "readOnly": True}] if has_ca(spec) else []


def trust_volumes(spec: StreamJobSpec) -> list[Manifest]:
    return [*ca_volumes(spec), {"name": _TRUST_VOLUME, "emptyDir": {}}] if has_ca(spec) else []


def trust_mounts(spec: StreamJobSpec, *, read_only: bool = True) -> list[Manifest]:
    if not has_ca(spec):
        return []
    mount: Manifest = {"name": _TRUST_VOLUME, "mountPath": TRUST}
    return [{**mount, "readOnly": True} if read_only else mount]


def trust_env(spec: StreamJobSpec) -> list[Manifest]:
    """By environment: it reaches each JVM of the container, and options of the user's own still win."""
    if not has_ca(spec):
        return []
    options = f"-Djavax.net.ssl.trustStore={TRUST_STORE} -Djavax.net.ssl.trustStoreType=JKS"
    return [{"name": "JAVA_TOOL_OPTIONS", "value": options}]
