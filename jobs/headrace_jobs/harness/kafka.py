"""`spec.kafka` as options of Spark's Kafka sources and sinks. Pure, and without pyspark.

An option is part of the query's plan, and a plan is shown: in the UI, in event logs, in `explain()`. So no
option holds a secret. Options name files, and the files are read in the JVMs that connect: the password by
our own class (see KafkaFileCredentials.java), certificates by Kafka itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace_jobs.harness.runfile import Kafka, KafkaCertificate, KafkaLogin

BOOTSTRAP = "kafka.bootstrap.servers"
_PROTOCOL = "kafka.security.protocol"
_PROVIDERS = "kafka.config.providers"
_CREDENTIALS_CLASS = "dev.headrace.KafkaFileCredentials"
# Kafka's PEM key store wants certificate and key in one file, and they are two: so it is given their text,
# which Kafka reads where it connects.
_PROVIDER = "headracefiles"
_PROVIDER_CLASS = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_KAFKA_FORMAT = re.compile(r"kafka|org\.apache\.spark\.sql\.kafka010(\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class OptionGroup:
    """Options that only make sense together: if the code sets one that `theirs` matches, all are its own."""

    options: Mapping[str, str]
    theirs: re.Pattern[str]


def is_kafka(source: str | None) -> bool:
    return source is not None and _KAFKA_FORMAT.fullmatch(source) is not None


def options_to_add(kafka: Kafka, given: Mapping[str, str]) -> dict[str, str]:
    """What a source or sink gets beside the options that the code gave it, by names in small letters."""
    if names_other_brokers(kafka, given):
        return {}
    added: dict[str, str] = {}
    for group in _groups(kafka):
        if not any(group.theirs.fullmatch(key) for key in given):
            added |= group.options
    if _PROVIDERS in added and given.get(_PROVIDERS):
        added[_PROVIDERS] = f"{given[_PROVIDERS]},{_PROVIDER}"
    return added


def references_of(kafka: Kafka | None) -> frozenset[str]:
    """Values that the manifest gives: they name secrets, and hold none."""
    return frozenset(options_to_add(kafka, {}).values()) if kafka is not None else frozenset()


def names_other_brokers(kafka: Kafka, given: Mapping[str, str]) -> bool:
    """The manifest's password is for the manifest's brokers: it is not shown to others."""
    named = given.get(BOOTSTRAP)
    if kafka.bootstrap_servers is None or named is None:
        return False
    return _brokers(named).isdisjoint(_brokers(kafka.bootstrap_servers))


def problems(kafka: Kafka) -> Iterator[str]:
    """What Kafka would say much later, and worse."""
    if kafka.sasl is not None:
        yield from _file_problem("spec.kafka.sasl.username", kafka.sasl.username_file)
        yield from _file_problem("spec.kafka.sasl.password", kafka.sasl.password_file)
    if kafka.ca_file is not None:
        yield from _file_problem("spec.kafka.tls.ca", kafka.ca_file, ("CERTIFICATE",))
    if kafka.client is not None:
        yield from _file_problem(
            "spec.kafka.tls.client.certificate", kafka.client.certificate_file, ("CERTIFICATE",)
        )
        yield from _file_problem(
            "spec.kafka.tls.client.privateKey", kafka.client.private_key_file, ("PRIVATE KEY",)
        )


def _groups(kafka: Kafka) -> Iterator[OptionGroup]:
    if kafka.bootstrap_servers is not None:
        yield OptionGroup({BOOTSTRAP: kafka.bootstrap_servers}, re.compile(re.escape(BOOTSTRAP)))
    yield OptionGroup({_PROTOCOL: kafka.protocol}, re.compile(re.escape(_PROTOCOL)))
    if kafka.sasl is not None:
        yield OptionGroup(
            _sasl(kafka.sasl),
            re.compile(r"kafka\.sasl\.(mechanism|jaas\.config|(client|login)\.callback\..*|login\.class)"),
        )
    if kafka.ca_file is not None:
        trusted = {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": kafka.ca_file}
        yield OptionGroup(trusted, re.compile(r"kafka\.ssl\.(truststore|engine)\..*"))
    if kafka.client is not None:
        yield OptionGroup(_key_store(kafka.client), re.compile(r"kafka\.ssl\.(keystore|key|engine)\..*"))


def _sasl(login: KafkaLogin) -> dict[str, str]:
    files = f"usernameFile={_quoted(login.username_file)} passwordFile={_quoted(login.password_file)}"
    return {
        "kafka.sasl.mechanism": login.mechanism,
        "kafka.sasl.jaas.config": f"{_LOGIN_MODULES[login.mechanism]} required {files};",
        "kafka.sasl.client.callback.handler.class": _CREDENTIALS_CLASS,
    }


def _key_store(client: KafkaCertificate) -> dict[str, str]:
    return {
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": _content_of(client.certificate_file),
        "kafka.ssl.keystore.key": _content_of(client.private_key_file),
        _PROVIDERS: _PROVIDER,
        f"{_PROVIDERS}.{_PROVIDER}.class": _PROVIDER_CLASS,
    }


def _content_of(file: str) -> str:
    """A placeholder, which Kafka's client puts the content of the file in the place of."""
    path = Path(file)
    return f"${{{_PROVIDER}:{path.parent}:{path.name}}}"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _brokers(servers: str) -> set[str]:
    return {broker.strip().lower() for broker in servers.split(",") if broker.strip()}


def _file_problem(field: str, file: str, pem: tuple[str, ...] = ()) -> Iterator[str]:
    try:
        content = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        yield f"{field}: {file} cannot be read: {why}"
        return
    if not content.strip():
        yield f"{field}: {file} is empty"
    for kind in pem:
        if content.strip() and f"-----BEGIN {kind}-----" not in content:
            yield f"{field}: {file} has no '-----BEGIN {kind}-----'. {_pem_advice(content)}"


def _pem_advice(content: str) -> str:
    if "BEGIN ENCRYPTED PRIVATE KEY" in content or "Proc-Type: 4,ENCRYPTED" in content:
        return "The key is encrypted: give it without a password"
    if "PRIVATE KEY-----" in content:
        return (
            "Kafka reads keys in PKCS#8 only: openssl pkcs8 -topk8 -nocrypt -in tls.key;"
            " with cert-manager: privateKey.encoding: PKCS8"
        )
    return "It must be PEM"
