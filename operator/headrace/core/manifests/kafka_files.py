"""Kafka's Secrets as files: at the same paths in driver and executors. run.json names them, no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.api.kafka import Kafka
from headrace.core.manifests.ownership import Manifest
from headrace.core.manifests.places import KAFKA


@dataclass(frozen=True, kw_only=True)
class NeededFile:
    """One key of a Secret or ConfigMap that Kafka's client reads as a file."""

    field: str
    volume: str
    kind: str
    name: str
    key: str
    file: str
    """Its name in the volume: our own, so that keys may be called anything."""

    @property
    def path(self) -> str:
        return f"{_mount_path(self.volume)}/{self.file}"


@dataclass(frozen=True, kw_only=True)
class NeededFiles:
    username: NeededFile | None = None
    password: NeededFile | None = None
    ca: NeededFile | None = None
    certificate: NeededFile | None = None
    private_key: NeededFile | None = None

    def all(self) -> list[NeededFile]:
        files = (self.username, self.password, self.ca, self.certificate, self.private_key)
        return [file for file in files if file is not None]


# Which field of the manifest a volume comes from: the kubelet knows the volume only.
VOLUME_FIELDS = {
    "kafka-sasl": "spec.kafka.sasl",
    "kafka-ca": "spec.kafka.tls.ca",
    "kafka-client": "spec.kafka.tls.client",
}


def needed_files(kafka: Kafka | None) -> NeededFiles:
    sasl = kafka.sasl if kafka is not None else None
    tls = kafka.tls if kafka is not None else None
    ca, client = (tls.ca, tls.client) if tls is not None else (None, None)
    return NeededFiles(
        username=sasl and _of_secret("kafka-sasl", "username", sasl.secret, sasl.username, "username"),
        password=sasl and _of_secret("kafka-sasl", "password", sasl.secret, sasl.password, "password"),
        ca=ca
        and NeededFile(
            field="spec.kafka.tls.ca",
            volume="kafka-ca",
            kind="Secret" if ca.secret is not None else "ConfigMap",
            name=ca.secret or ca.config_map or "",
            key=ca.key,
            file="ca.crt",
        ),
        certificate=client
        and _of_secret("kafka-client", "certificate", client.secret, client.certificate, "tls.crt"),
        private_key=client
        and _of_secret("kafka-client", "privateKey", client.secret, client.private_key, "tls.key"),
    )


def kafka_volumes(kafka: Kafka | None) -> list[Manifest]:
    """Not optional: without its Secret a pod waits, and goes on by itself when there is one."""
    by_volume: dict[str, list[NeededFile]] = {}
    for file in needed_files(kafka).all():
        by_volume.setdefault(file.volume, []).append(file)
    return [{"name": volume, **_source(files)} for volume, files in by_volume.items()]


def kafka_mounts(kafka: Kafka | None) -> list[Manifest]:
    names = [volume["name"] for volume in kafka_volumes(kafka)]
    return [{"name": name, "mountPath": _mount_path(name), "readOnly": True} for name in names]


def kafka_section(kafka: Kafka | None, *, where: Callable[[NeededFile], str]) -> Manifest | None:
    """Of run.json. `where` says at which path a file is: in a pod, or on a laptop."""
    if kafka is None:
        return None
    files = needed_files(kafka)
    sasl, client = None, None
    if kafka.sasl is not None and files.username is not None and files.password is not None:
        sasl = {
            "mechanism": kafka.sasl.mechanism,
            "usernameFile": where(files.username),
            "passwordFile": where(files.password),
        }
    if files.certificate is not None and files.private_key is not None:
        client = {"certificateFile": where(files.certificate), "privateKeyFile": where(files.private_key)}
    return {
        "bootstrapServers": kafka.bootstrap_servers,
        "protocol": kafka.protocol,
        "sasl": sasl,
        "caFile": where(files.ca) if files.ca is not None else None,
        "client": client,
    }


def _of_secret(volume: str, field: str, secret: str, key: str, file: str) -> NeededFile:
    return NeededFile(
        field=f"{VOLUME_FIELDS[volume]}.{field}",
        volume=volume,
        kind="Secret",
        name=secret,
        key=key,
        file=file,
    )


def _mount_path(volume: str) -> str:
    return f"{KAFKA}/{volume.removeprefix('kafka-')}"


def _source(files: list[NeededFile]) -> Manifest:
    items = [{"key": file.key, "path": file.file} for file in files]
    if files[0].kind == "ConfigMap":
        return {"configMap": {"name": files[0].name, "items": items}}
    return {"secret": {"secretName": files[0].name, "items": items}}
