"""`spec.kafka` against a real broker with SASL and TLS: it connects, and no secret is shown anywhere."""

import contextlib
import json
import os
import shutil
import urllib.request
from pathlib import Path

import psutil
import pytest

from headrace_jobs.harness.driver_jvm import spark_home
from headrace_jobs.jvm.jars import connector_jars
from tests.spark.kafka.broker import PASSWORD, USER, Broker, running_broker

# No word of security in it, but where it says so.
JOB = r"""
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession

place, elsewhere = Path(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.getOrCreate()
jvm, gateway = spark._jvm, spark.sparkContext._gateway
told = {}

# Made before they are written to: producers stumble over topics that come into being under them.
properties = jvm.java.util.Properties()
properties.setProperty("bootstrap.servers", elsewhere)
admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
topics = jvm.java.util.ArrayList()
for name in ("numbers", "plain", "bobs", "copied", "sunk"):
    topics.add(jvm.org.apache.kafka.clients.admin.NewTopic(name, 2, 1))
admin.createTopics(topics).all().get()
admin.close()

numbers = spark.range(20).selectExpr("cast(id as string) as key", "cast(id as string) as value")
numbers.write.format("kafka").option("topic", "numbers").save()
# Another broker: nothing of the manifest's settings may reach it.
numbers.write.save(format="kafka", topic="plain", **{"kafka.bootstrap.servers": elsewhere})
# The code's own user and key, over the manifest's authority: first as Kafka has it, then by our class.
module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
(place / "secrets/bob").write_text("bob")
(place / "secrets/bobs").write_text("b0bs-own\n")
files = f'usernameFile="{place}/secrets/bob" passwordFile="{place}/secrets/bobs"'
bob = numbers.write.format("kafka").option("topic", "bobs").option("kafka.sasl.mechanism", "PLAIN")
bob.option("kafka.ssl.keystore.type", "PEM").options(**{
    "kafka.ssl.keystore.certificate.chain": (place / "broker/client.crt").read_text(),
    "kafka.ssl.keystore.key": (place / "broker/client.key").read_text(),
})
bob.option("kafka.sasl.jaas.config", f'{module} username="bob" password="b0bs-own";').save()
bob.option("kafka.sasl.jaas.config", f"{module} {files};").option(
    "kafka.sasl.client.callback.handler.class", "dev.headrace.KafkaFileCredentials").save()

def read(topic):
    return spark.read.format("kafka").option("subscribe", topic).load()

told["bobs"] = read("bobs").count()

# A table of SQL, and one of the catalog: neither speaks of security.
spark.sql("CREATE TABLE of_sql USING kafka OPTIONS (subscribe 'numbers')")
spark.catalog.createTable("of_catalog", source="kafka", subscribe="numbers")
told["tables"] = [spark.table(name).count() for name in ("of_sql", "of_catalog")]

# A rotated Secret is read for the next connection, by the same client.
handler = jvm.dev.headrace.KafkaFileCredentials()
flag = jvm.javax.security.auth.login.AppConfigurationEntry.LoginModuleControlFlag.REQUIRED
paths = {"usernameFile": f"{place}/secrets/bob", "passwordFile": f"{place}/secrets/rotated"}
entry = jvm.javax.security.auth.login.AppConfigurationEntry("module", flag, jvm.java.util.HashMap(paths))
handler.configure(jvm.java.util.HashMap(), "PLAIN", jvm.java.util.List.of(entry))
asked = gateway.new_array(jvm.javax.security.auth.callback.Callback, 1)
asked[0] = jvm.javax.security.auth.callback.PasswordCallback("password", False)
told["rotated"] = []
for password in ("first", "second"):
    (place / "secrets/rotated").write_text(password)
    handler.handle(asked)
    told["rotated"].append(jvm.java.lang.String(asked[0].getPassword()))

def copy(frame, batch_id):
    frame.select("value").write.format("kafka").option("topic", "copied").save()
    told["copied"] = read("copied").count()
    (place / "told.json").write_text(json.dumps(told))

stream = (
    spark.readStream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 10)
    .option("subscribe", "numbers").format("kafka").load()
)
stream.writeStream.queryName("copies").foreachBatch(copy).start()
stream.select("value").writeStream.queryName("sink").start(format="kafka", topic="sunk")
spark.streams.awaitAnyTermination()
"""


@pytest.fixture
def executor_files():
    """Where a worker on this machine keeps the logs of its executors. Spark has no setting for it."""
    work = spark_home() / "work"
    yield work
    shutil.rmtree(work, ignore_errors=True)


@pytest.mark.full  # fetches a broker (45 MB) the first time
def test_a_job_without_a_word_of_security_reaches_a_secured_broker(drive, tmp_path, executor_files):
    for name in ("secrets", "broker", "events"):
        (tmp_path / name).mkdir()
    with running_broker(tmp_path / "broker") as broker:
        driver = drive(
            JOB,
            application={"args": [str(tmp_path), broker.open]},
            kafka=settings(broker, tmp_path / "secrets"),
            spark_conf=conf(tmp_path),
        )
        lags = [driver.wait_for_batch(query, 1)["lag"]["known"] for query in ("copies", "sink")]
        shown = {**what_spark_shows(driver.status()["uiUrl"]), **command_lines(driver)}
        assert driver.call("POST", "/v1/drain")[0] == 202
        assert driver.end()["reason"] == "Drained", driver.log()
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {"bobs": 40, "rotated": ["first", "second"], "copied": 20, "tables": [20, 20]}
    assert lags == [True, True]
    events = files_of(tmp_path / "events")
    for place in (driver.directory, tmp_path / "store", executor_files):
        shown |= files_of(place)
    assert any(name.endswith("stderr") for name in shown), "the executor's log is not among it"
    # Options are shown; this is why they must not hold secrets.
    assert "kafka.ssl.keystore.key" in "".join(events.values())
    key = broker.private_key.read_text().splitlines()[1]
    secrets = {PASSWORD, json.dumps(PASSWORD)[1:-1], PASSWORD.replace('"', "&quot;"), "b0bs-own", key}
    all_shown = {**shown, **events}
    assert [(place, one) for place, text in all_shown.items() for one in secrets if one in text] == []


def settings(broker: Broker, secrets: Path) -> dict[str, object]:
    (secrets / "username").write_text(USER)
    (secrets / "password").write_text(PASSWORD + "\n")
    return {
        "bootstrapServers": broker.secure,
        "protocol": "SASL_SSL",
        "sasl": {
            "mechanism": "SCRAM-SHA-512",
            "usernameFile": str(secrets / "username"),
            "passwordFile": str(secrets / "password"),
        },
        "caFile": str(broker.ca),
        "client": {"certificateFile": str(broker.certificate), "privateKeyFile": str(broker.private_key)},
    }


def conf(tmp_path: Path) -> dict[str, str]:
    return {
        # An executor of its own: the settings must reach another JVM than the driver's.
        "spark.master": "local-cluster[1,2,1024]",
        "spark.executor.memory": "512m",
        "spark.jars": ",".join(map(str, connector_jars("kafka"))),
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.eventLog.compress": "false",
    }


def what_spark_shows(ui: str) -> dict[str, str]:
    application = json.loads(fetched(f"{ui}/api/v1/applications"))[0]["id"]
    rest = f"{ui}/api/v1/applications/{application}"
    details = f"{rest}/sql?details=true&planDescription=true"
    pages = [f"{ui}/environment/", f"{ui}/SQL/", f"{ui}/StreamingQuery/", f"{rest}/environment", details]
    return {page: fetched(page) for page in pages}


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def command_lines(driver) -> dict[str, str]:
    own = psutil.Process(driver.process.pid)
    lines = {}
    for process in [own, *own.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # Spark's short-lived children
            lines[f"process {process.pid}"] = " ".join(process.cmdline())
    assert any("CoarseGrainedExecutorBackend" in line for line in lines.values())
    return lines


def files_of(directory: Path) -> dict[str, str]:
    files = [
        Path(home) / name
        for home, _, names in os.walk(directory)
        for name in names
        if not name.endswith(".jar")
    ]
    return {str(file): file.read_text(errors="replace") for file in files}
