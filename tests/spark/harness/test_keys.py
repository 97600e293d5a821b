"""Keys to S3 under the harness, with executors of their own: looked for wherever somebody else could read."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from headrace_jobs.harness.driver_jvm import spark_home
from headrace_jobs.jvm.jars import connector_jars
from headrace_jobs.store import open_store
from headrace_jobs.store.s3_options import S3Options, spark_conf
from tests.spark.checkpoint.conftest import s3_keys, s3_server
from tests.spark.harness.conftest import DriverProcess
from tests.spark.harness.test_endings import script
from tests.spark.s3server import S3Server, add_user
from tests.unit.store.test_s3_options import MountedSecret

__all__ = ["s3_keys", "s3_server"]

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]  # Spark's own words, all of them, take their time

COUNTING = script(
    """
    import logging
    if {talkative}:
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("headrace").setLevel(logging.DEBUG)

    @F.udf("long")
    def halved(value):
        return value // 2

    counts = ticks.select((halved("value") % 5).alias("key")).groupBy("key").count()
    counts.writeStream.queryName("counts").outputMode("update").format("noop").start().awaitTermination()
    """
)
# The gateway's own logger gives its level to all others when a JVM is started for Python.
LOGGING = """
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
APPLICATION_PAGES = (
    "environment",
    "jobs?status=running",
    "stages",
    "allexecutors",
    "executors/driver/threads",
    "sql?details=true",
    "storage/rdd",
    "allmiscellaneousprocess",
)
PAGES = ("/environment/", "/executors/", "/jobs/", "/stages/", "/SQL/", "/StreamingQuery/", "/metrics/json/")


@dataclass(frozen=True)
class Job:
    """A job in a bucket that one user may use, and how it is told the keys."""

    url: str
    options: S3Options
    key_id: str
    secret: str
    owner: S3Server
    tell: Callable[[str], None]
    """Gives the job another secret to its key."""

    def run_with(self, **conf: str) -> dict[str, Any]:
        jars = {"spark.jars": ",".join(map(str, connector_jars("s3a")))}
        return {"store": self.url, "spark_conf": spark_conf(self.options) | jars | conf}

    def lose_rights(self) -> None:
        """From now on the bucket is another user's."""
        other = f"other-{uuid.uuid4()}"
        add_user(self.owner, other)
        self.owner.allow(self.url.split("/")[2], other)

    def objects(self) -> dict[str, str]:
        store = open_store(
            self.url, replace(self.owner.options(), credentials_file=self.options.credentials_file)
        )
        return {entry.key: store.get(entry.key).decode(errors="replace") for entry in store.list()}


@pytest.fixture(params=["environment", "files"])
def job(
    request: pytest.FixtureRequest,
    s3_server: S3Server,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Job:
    bucket, name = s3_server.new_bucket(), f"key-{uuid.uuid4()}"
    user = add_user(s3_server, name)
    s3_server.allow(bucket, name)
    options = s3_server.options()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", name)
    tell = functools.partial(monkeypatch.setenv, "AWS_SECRET_ACCESS_KEY")
    if request.param == "files":
        for variable in user:
            monkeypatch.delenv(variable)
        mounted = MountedSecret(tmp_path_factory.mktemp("secret") / "keys")
        options = replace(options, credentials_file=mounted.directory)
        tell = lambda secret: mounted.hold(access_key_id=name, secret_access_key=secret)  # noqa: E731
    tell(user["AWS_SECRET_ACCESS_KEY"])
    url = f"s3://{bucket}/shop/job/uid"
    return Job(url, options, name, user["AWS_SECRET_ACCESS_KEY"], s3_server, tell)


@pytest.fixture
def executor_logs() -> Iterator[Path]:
    """Where Spark's local cluster puts them, wherever it is started from."""
    work = spark_home() / "work"
    before = set(work.glob("app-*"))
    yield work
    for ours in set(work.glob("app-*")) - before:
        shutil.rmtree(ours)


def talking(directory: Path, level: str) -> str:
    """What makes a JVM say all that there is at this level, of Spark, Hadoop and the SDK."""
    settings = directory / "log4j2.properties"
    settings.write_text(LOGGING.format(level=level.lower()))
    return f"-Dlog4j2.configurationFile={settings.as_uri()}"


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def shown_in_the_ui(ui: str) -> dict[str, str]:
    (application,) = json.loads(page(f"{ui}/api/v1/applications"))
    paths = [*PAGES, *(f"/api/v1/applications/{application['id']}/{name}" for name in APPLICATION_PAGES)]
    return {path: page(ui + path) for path in paths}


def arguments_under(driver: DriverProcess) -> dict[str, str]:
    process = psutil.Process(driver.process.pid)
    family: dict[str, str] = {}
    for one in [process, *process.children(recursive=True)]:
        # Of the dead nobody sees any: Spark's start script leaves the JVM a child that has ended.
        with contextlib.suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            family[f"arguments of {one.pid}"] = "\0".join(one.cmdline())
    return family


def texts_in(directory: Path) -> dict[str, str]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path): path.read_text(errors="replace") for path in files}


def where_is(word: str, seen: dict[str, str]) -> list[str]:
    return [where for where, text in seen.items() if word in text]


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_keys_are_seen_nowhere_while_a_job_runs(
    drive: Any, job: Job, tmp_path: Path, executor_logs: Path, level: str
) -> None:
    events = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{job.url.replace('s3:', 's3a:')}/run-1/_events",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.compress": "false",  # readable here without a codec
    }
    conf = {
        "spark.master": "local-cluster[1,1,512]",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        **{f"spark.{who}.extraJavaOptions": talking(tmp_path, level) for who in ("driver", "executor")},
    }
    text = COUNTING.replace("{talkative}", str(level == "DEBUG"))
    driver = drive(text, **job.run_with(**{**conf, **events}))
    driver.wait_for_batch("counts", 1)
    seen = arguments_under(driver)
    assert any("CoarseGrainedExecutorBackend" in text for text in seen.values()), "no executor of its own"
    assert any("pyspark.daemon" in text or "pyspark/daemon" in text for text in seen.values()), "no worker"
    seen |= shown_in_the_ui(driver.status()["uiUrl"])
    seen |= {path: driver.call("GET", path)[1].decode() for path in ("/v1/status", "/metrics")}
    driver.call("POST", "/v1/drain")
    assert driver.end()["reason"] == "Drained", driver.log()[-5000:]
    seen |= texts_in(tmp_path)  # the log of the harness and the driver, and all that they wrote
    seen |= texts_in(executor_logs)
    seen |= job.objects()

    # Each of them was really looked at: settings are shown there, Spark and Python were as talkative as told.
    endpoint = str(job.options.endpoint)
    for shows_settings in ("/environment/", "/_events/", "driver.log", "/stderr"):
        assert any(shows_settings in where for where in seen), f"nothing of {shows_settings} was looked at"
    for shows_settings in ("/environment", "/_events/"):
        assert any(shows_settings in where for where in where_is(endpoint, seen))
    for log in ("driver.log", "/stderr"):
        assert any(where.endswith(log) for where in where_is(f" {level} ", seen)), f"no {level} in {log}"
    assert level == "INFO" or where_is("DEBUG:botocore", seen), "Python's own words are missing"
    assert where_is(job.secret, seen) == []
    # At DEBUG the SDKs show the headers of their requests, which name the key's id, and not the key.
    assert level == "DEBUG" or where_is(job.key_id, seen) == []


@pytest.mark.parametrize("wrong", ["bucket", "secret", "rights"])
def test_keys_are_not_part_of_what_is_told_of_a_refusal(
    drive: Any, job: Job, tmp_path: Path, wrong: str
) -> None:
    secret, url = job.secret, job.url
    match wrong:
        case "bucket":
            url = "s3://never-made/shop/job/uid"
        case "rights":
            job.lose_rights()
        case "secret":
            secret = f"wrong-{uuid.uuid4()}"
            job.tell(secret)
    driver = drive(COUNTING.replace("{talkative}", "True"), **replace(job, url=url).run_with())
    assert driver.end()["reason"] == "StoreUnavailable", driver.log()[-5000:]
    seen = texts_in(tmp_path)
    assert {"driver.log", "termination.json"} <= {Path(where).name for where in seen}
    assert where_is(secret, seen) == []


def test_a_running_job_that_loses_its_rights_says_so_and_tells_no_key(
    drive: Any, job: Job, tmp_path: Path
) -> None:
    driver = drive(COUNTING.replace("{talkative}", "True"), **job.run_with())
    driver.wait_for_batch("counts", 1)
    job.lose_rights()
    assert driver.end()["reason"] == "StoreUnavailable", driver.log()[-5000:]
    assert "AccessDenied" in driver.log()
    assert where_is(job.secret, texts_in(tmp_path)) == []
