"""`spec.kafka` against a real broker with SASL and TLS: it connects, and nothing that is shown tells a secret."""

import json
import os
import urllib.request
from pathlib import Path

import psutil
import pytest

from headrace_jobs.jvm.jars import connector_jars
from tests.spark.kafka.broker import PASSWORD, USER, running_broker

# No word of security in it, but where it says so.
JOB = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession

place, elsewhere = Path(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.getOrCreate()

numbers = spark.range(20).selectExpr("cast(id as string) as key", "cast(id as string) as value")
numbers.write.format("kafka").option("topic", "numbers").save()
# Another broker: nothing of the manifest's settings may reach it.
numbers.write.save(format="kafka", topic="plain", **{"kafka.bootstrap.servers": elsewhere})
# The code's own user, over the manifest's TLS.
own = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="bob" password="bobs";'
numbers.write.format("kafka").option("topic", "bobs").option("kafka.sasl.jaas.config", own).option(
    "kafka.sasl.mechanism", "PLAIN").save()

def read(topic):
    return spark.read.format("kafka").option("subscribe", topic).load()

def copy(frame, batch_id):
    frame.select("value").write.format("kafka").option("topic", "copied").save()
    (place / "copied.txt").write_text(str(read("copied").count()))

stream = (
    spark.readStream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 10)
    .option("subscribe", "numbers").format("kafka").load()
)
stream.writeStream.queryName("copies").foreachBatch(copy).start()
stream.select("value").writeStream.queryName("sink").start(format="kafka", topic="sunk")
(place / "explained.txt").write_text(stream._jdf.queryExecution().toString())
spark.streams.awaitAnyTermination()
"""


@pytest.mark.full  # fetches a broker (45 MB) the first time
def test_a_job_without_a_word_of_security_reaches_a_secured_broker(drive, tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "username").write_text(USER)
    (secrets / "password").write_text(PASSWORD + "\n")
    home = tmp_path / "broker"
    home.mkdir()
    with running_broker(home) as broker:
        driver = drive(
            JOB,
            application={"args": [str(tmp_path), broker.open]},
            kafka={
                "bootstrapServers": broker.secure,
                "protocol": "SASL_SSL",
                "sasl": {
                    "mechanism": "SCRAM-SHA-512",
                    "usernameFile": str(secrets / "username"),
                    "passwordFile": str(secrets / "password"),
                },
                "caFile": str(broker.ca),
                "client": {
                    "certificateFile": str(broker.certificate),
                    "privateKeyFile": str(broker.private_key),
                },
            },
            spark_conf=conf(tmp_path),
        )
        for query in ("copies", "sink"):
            progress = driver.wait_for_batch(query, 1)
        driver.wait_for_file(tmp_path / "copied.txt")
        assert progress["lag"]["known"], progress
        shown = {**what_spark_shows(driver.status()["uiUrl"]), **command_lines(driver)}
        assert driver.call("POST", "/v1/drain")[0] == 202
        assert driver.end()["reason"] == "Drained", driver.log()
        shown |= files_of(driver.directory) | files_of(tmp_path / "events") | files_of(tmp_path / "store")
        shown["explain"] = (tmp_path / "explained.txt").read_text()
    assert int((tmp_path / "copied.txt").read_text()) == 20
    assert "KafkaFileCredentials" in json.dumps(shown), "the look is at the wrong places"
    key_text = broker.private_key.read_text().splitlines()[1]
    forms = {PASSWORD, json.dumps(PASSWORD)[1:-1], PASSWORD.replace('"', "&quot;"), "ss\\w0rd", key_text, "bobs\""}
    told = [(place, secret) for place, text in shown.items() for secret in forms if secret in text]
    assert told == []


def conf(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "events").mkdir()
    return {
        # A worker and an executor of their own: the settings must reach another JVM than the driver's.
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
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own, on loopback
        return answer.read().decode()


def command_lines(driver) -> dict[str, str]:
    processes = [psutil.Process(driver.process.pid), *psutil.Process(driver.process.pid).children(recursive=True)]
    return {f"process {one.pid}": " ".join(one.cmdline()) for one in processes}


def files_of(directory: Path) -> dict[str, str]:
    files = [Path(home) / name for home, _, names in os.walk(directory) for name in names]
    return {str(file): file.read_text(errors="replace") for file in files}
