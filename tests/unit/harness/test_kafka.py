"""`spec.kafka` as options: what is added, what the code keeps, and that no secret is among it."""

from pathlib import Path

import pytest

from headrace_jobs.harness.kafka import is_kafka, options_to_add, problems
from headrace_jobs.harness.kafka_defaults import add_defaults, give_kafka_defaults
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.runfile import Kafka, KafkaCertificate, KafkaLogin


def a_kafka(**changes) -> Kafka:
    given = {
        "bootstrap_servers": "kafka-0:9093,kafka-1:9093",
        "protocol": "SASL_SSL",
        "sasl": KafkaLogin("SCRAM-SHA-512", "/k/sasl/username", "/k/sasl/password"),
        "ca_file": "/k/ca/ca.crt",
        "client": KafkaCertificate("/k/client/tls.crt", "/k/client/tls.key"),
    }
    return Kafka(**{**given, **changes})


ALL = options_to_add(a_kafka(), {})
SASL = {key for key in ALL if key.startswith("kafka.sasl.")}
TRUST = {key for key in ALL if key.startswith("kafka.ssl.truststore.")}
CLIENT = {key for key in ALL if key.startswith(("kafka.ssl.keystore.", "kafka.config.providers"))}


def test_everything_is_set_and_names_files_only():
    assert ALL == {
        "kafka.bootstrap.servers": "kafka-0:9093,kafka-1:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' usernameFile="/k/sasl/username" passwordFile="/k/sasl/password";',
        "kafka.sasl.client.callback.handler.class": "dev.headrace.KafkaFileCredentials",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/k/ca/ca.crt",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "${headracefiles:/k/client:tls.crt}",
        "kafka.ssl.keystore.key": "${headracefiles:/k/client:tls.key}",
        "kafka.config.providers": "headracefiles",
        "kafka.config.providers.headracefiles.class": "org.apache.kafka.common.config.provider."
        "DirectoryConfigProvider",
    }


def test_a_path_with_quotes_stays_one_path():
    kafka = a_kafka(sasl=KafkaLogin("PLAIN", '/a "b"/u', "C:\\p"))
    config = options_to_add(kafka, {})["kafka.sasl.jaas.config"]
    assert config.startswith("org.apache.kafka.common.security.plain.PlainLoginModule required ")
    assert config.endswith('usernameFile="/a \\"b\\"/u" passwordFile="C:\\\\p";')


def test_only_brokers_when_there_is_nothing_else():
    kafka = a_kafka(protocol="PLAINTEXT", sasl=None, ca_file=None, client=None)
    assert options_to_add(kafka, {}).keys() == {"kafka.bootstrap.servers", "kafka.security.protocol"}


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        ({"subscribe": "clicks"}, set()),
        ({"kafka.security.protocol": "SSL"}, {"kafka.security.protocol"}),
        ({"kafka.bootstrap.servers": "kafka-1:9093"}, {"kafka.bootstrap.servers"}),
        # Settings that belong together: half of ours and half of theirs would be neither.
        ({"kafka.sasl.jaas.config": "…"}, SASL),
        ({"kafka.sasl.mechanism": "OAUTHBEARER"}, SASL),
        ({"kafka.sasl.login.connect.timeout.ms": "1"}, set()),
        ({"kafka.ssl.truststore.location": "/their.jks"}, TRUST),
        ({"kafka.ssl.keystore.location": "/their.jks"}, CLIENT),
        ({"kafka.ssl.protocol": "TLSv1.3"}, set()),
    ],
)
def test_the_code_wins(given, left_out):
    assert ALL.keys() - options_to_add(a_kafka(), given).keys() == left_out


def test_other_brokers_are_not_shown_the_password():
    assert options_to_add(a_kafka(), {"kafka.bootstrap.servers": "elsewhere:9092"}) == {}
    no_brokers = a_kafka(bootstrap_servers=None)
    added = options_to_add(no_brokers, {"kafka.bootstrap.servers": "elsewhere:9092"})
    assert added == {key: value for key, value in ALL.items() if key != "kafka.bootstrap.servers"}


def test_providers_of_the_code_stay():
    added = options_to_add(a_kafka(), {"kafka.config.providers": "env"})
    assert added["kafka.config.providers"] == "env,headracefiles"


@pytest.mark.parametrize("name", ["kafka", "Kafka", "org.apache.spark.sql.kafka010.KafkaSourceProvider"])
def test_what_is_kafka(name):
    assert is_kafka(name)
    assert not is_kafka(f"{name}x".replace("Providerx", "").replace("org.", "com."))
    assert not is_kafka(None)


@pytest.fixture
def files(tmp_path: Path) -> Kafka:
    certificate, key = "-----BEGIN CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\n"
    contents = {"u": "alice\n", "p": "x", "ca": certificate, "crt": certificate, "key": key}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    paths = {name: str(tmp_path / name) for name in contents}
    return a_kafka(
        sasl=KafkaLogin("PLAIN", paths["u"], paths["p"]),
        ca_file=paths["ca"],
        client=KafkaCertificate(paths["crt"], paths["key"]),
    )


def test_good_files_are_no_problem(files):
    assert list(problems(files)) == []


@pytest.mark.parametrize(
    ("file", "field", "advice"),
    [
        (("p", None), "spec.kafka.sasl.password", "No such file"),
        (("u", " "), "spec.kafka.sasl.username", "is empty"),
        (("ca", "MIIB…"), "spec.kafka.tls.ca", "must be PEM"),
        (("crt", "-----BEGIN PRIVATE KEY-----"), "spec.kafka.tls.client.certificate", "BEGIN CERTIFICATE"),
        (("key", "-----BEGIN RSA PRIVATE KEY-----"), "spec.kafka.tls.client.privateKey", "PKCS8"),
        (
            ("key", "-----BEGIN ENCRYPTED PRIVATE KEY-----"),
            "spec.kafka.tls.client.privateKey",
            "is encrypted",
        ),
    ],
)
def test_a_bad_file_is_told_with_its_field(files, tmp_path, file, field, advice):
    name, content = file
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    (told,) = problems(files)
    assert told.startswith(f"{field}: ")
    assert advice in told


class FakeJava:
    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def format(self, source):
        del source
        return self

    def option(self, key, value):
        self.told[key] = value
        return self

    def load(self, *_):
        return self.told

    save = load


@pytest.fixture
def patched():
    patches = Patches()
    give_kafka_defaults(patches, a_kafka(sasl=None, ca_file=None, client=None, protocol="SSL"))
    yield
    patches.undo()


def made(kind, java):
    io = object.__new__(kind)
    io._jreader = io._jwrite = java
    io._df = lambda told: told
    return io


@pytest.mark.parametrize("kind", ["DataStreamReader", "DataFrameReader"])
@pytest.mark.usefixtures("patched")
def test_readers_get_what_the_code_leaves_open_whatever_the_order(kind):
    from pyspark.sql import DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader

    owner = {"DataStreamReader": DataStreamReader, "DataFrameReader": DataFrameReader}[kind]
    reader = made(owner, FakeJava()).option("kafka.Security.Protocol", "PLAINTEXT").format("kafka")
    told = reader.load(subscribe="clicks")
    assert told == {
        "kafka.Security.Protocol": "PLAINTEXT",
        "subscribe": "clicks",
        "kafka.bootstrap.servers": "kafka-0:9093,kafka-1:9093",
    }
    assert made(owner, FakeJava()).load(format="rate") == {}


@pytest.mark.usefixtures("patched")
def test_writers_of_batches_too():
    from pyspark.sql.readwriter import DataFrameWriter

    java = FakeJava()
    writer = made(DataFrameWriter, java)
    writer.save(format="kafka", topic="out")
    assert java.told == {
        "topic": "out",
        "kafka.bootstrap.servers": "kafka-0:9093,kafka-1:9093",
        "kafka.security.protocol": "SSL",
    }


def test_an_object_that_was_told_nothing_gets_nothing():
    java = FakeJava()
    io = type("Io", (), {})()
    io._jwrite = java
    add_defaults(io, "_jwrite", a_kafka())
    assert java.told == {}
