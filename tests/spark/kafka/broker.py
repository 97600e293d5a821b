"""A real Kafka broker on this machine that asks for everything: TLS, a client certificate, a password."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace_jobs.jvm import find_java
from headrace_jobs.jvm.jars import locked_jars
from tests.e2e.services import LOGGING
from tests.e2e.testimages import KAFKA_LOCK
from tests.spark.harness.conftest import wait_for

USER = "alice"
# What a setting in quotes would not survive.
PASSWORD = 'pa"ss\\w0rd;'
STORE_PASSWORD = "of-the-broker"

SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=SECURE://127.0.0.1:{secure},OPEN://127.0.0.1:{open},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=SECURE:SASL_SSL,OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=OPEN
controller.listener.names=CONTROLLER
log.dirs={home}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=16777216
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.secure.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="b0bs-own";
listener.name.secure.ssl.client.auth=required
listener.name.secure.ssl.keystore.type=PKCS12
listener.name.secure.ssl.keystore.location={home}/broker.p12
listener.name.secure.ssl.keystore.password={store_password}
listener.name.secure.ssl.key.password={store_password}
listener.name.secure.ssl.truststore.type=PEM
listener.name.secure.ssl.truststore.location={home}/ca.crt
"""


@dataclass(frozen=True)
class Broker:
    home: Path
    secure: str
    open: str
    pid: int

    @property
    def ca(self) -> Path:
        return self.home / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.home / "client.crt"

    @property
    def private_key(self) -> Path:
        return self.home / "client.key"


@contextlib.contextmanager
def running_broker(home: Path) -> Iterator[Broker]:
    ports = {name: _free_port() for name in ("secure", "open", "controller")}
    _make_certificates(home)
    settings = home / "server.properties"
    settings.write_text(SETTINGS.format(home=home, store_password=STORE_PASSWORD, **ports))
    (home / "log4j2.properties").write_text(LOGGING)
    java = [
        str(find_java().executable),
        *("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        f"-Dlog4j2.configurationFile={home}/log4j2.properties",
        *("-cp", os.pathsep.join(map(str, locked_jars(KAFKA_LOCK)))),
    ]
    user = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
    log = home / "broker.log"
    with log.open("ab") as output:
        formatting = [
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "MkU3OEVBNTcwNTJENDM2Qk",
            "-c",
            str(settings),
        ]
        subprocess.run([*java, *formatting, "--add-scram", user], stdout=output, stderr=output, check=True)
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=output, stderr=output)
    try:

        def listening() -> bool:
            assert process.poll() is None, log.read_text()
            return all(_accepts(port) for port in ports.values())

        wait_for(listening, "the broker does not listen")
        yield Broker(home, f"127.0.0.1:{ports['secure']}", f"127.0.0.1:{ports['open']}", process.pid)
    finally:
        process.kill()
        process.wait()


def _make_certificates(home: Path) -> None:
    """An authority for one test, and what it signed: the broker's certificate and the client's."""
    _openssl(home, "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=authority")
    (home / "san").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("broker", "client"):
        _openssl(home, f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}")
        sign = f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san"
        _openssl(home, f"{sign} -out {name}.crt")
    store = f"-out broker.p12 -passout pass:{STORE_PASSWORD}"
    _openssl(home, f"pkcs12 -export -in broker.crt -inkey broker.key {store}")


def _openssl(home: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=home, check=True, capture_output=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
