"""Topics, asked by Kafka's own admin client in a small JVM, with the settings that the driver has noted."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from headrace_jobs.harness.conf import driver_conf
from headrace_jobs.harness.driver_jvm import DriverJvm, JvmFailed, spark_home, start_driver_jvm
from headrace_jobs.harness.jvm_errors import innermost
from headrace_jobs.harness.kafka_lag import retention_of
from headrace_jobs.harness.offsets import LookFailed, shortest
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.harness.scratch import make_scratch
from headrace_jobs.harness.source_notes import Note
from headrace_jobs.jvm import find_java, jar_path

log = logging.getLogger("headrace")

_GATEWAY_SECONDS = 120.0
_PATIENCE = {"default.api.timeout.ms": "20000", "request.timeout.ms": "10000"}
# It only asks: a small heap, and no compiler that would warm up for nothing.
_SMALL = {
    "spark.master": "local[1]",
    "spark.driver.memory": "128m",
}
# No word on the collector: the user's own may be among the options, and two of them are an error.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:MaxMetaspaceSize=128m"
_OPTIONS_KEY = "spark.driver.extraJavaOptions"


def start_small_jvm(run_file: RunFile) -> tuple[DriverJvm, Any]:
    """With the driver's class path, so that connectors are found where the driver finds them, and no Spark in
    it. Raises JvmFailed."""
    conf = driver_conf(run_file, jars=[jar_path().as_uri()], run_context="")
    conf |= {**_SMALL, _OPTIONS_KEY: f"{conf.get(_OPTIONS_KEY, '')} {_JAVA_OPTIONS}".strip()}
    environment = dict(os.environ)
    environment.setdefault("JAVA_HOME", str(find_java().home))
    scratch = make_scratch()
    jvm = start_driver_jvm(
        spark_home=spark_home(),
        scratch=scratch.path,
        conf=conf,
        environment=environment,
        inherit=(scratch.lock,),
    )
    try:
        found = jvm.wait_for_gateway(_GATEWAY_SECONDS)
    except JvmFailed:
        # The next look starts another one, and the pod has memory for one.
        jvm.halt()
        raise
    parameters = GatewayParameters(port=found.port, auth_token=found.secret, auto_convert=True)
    return jvm, JavaGateway(gateway_parameters=parameters).jvm


class Kafka:
    """The JVM, started when the first source needs it."""

    def __init__(self, run_file: RunFile) -> None:
        self._run_file = run_file
        self._process: DriverJvm | None = None
        self._jvm: Any = None

    def topics(self, note: Note) -> KafkaTopics:
        if self._jvm is None:
            try:
                self._process, self._jvm = start_small_jvm(self._run_file)
            except JvmFailed as error:
                raise LookFailed(str(error)) from None
        return KafkaTopics(self._jvm, note)

    def close(self) -> None:
        if self._process is not None:
            self._process.halt()


class KafkaTopics:
    """The topics of one source."""

    def __init__(self, jvm: Any, note: Note) -> None:
        self._jvm = jvm
        self._topics: Mapping[str, str] = note["topics"]
        self._committed_only = note["params"].get("isolation.level") == "read_committed"
        self._params: dict[str, str] = {**note["params"], **_PATIENCE}
        self._admin: Any = None

    def look(self) -> tuple[Mapping[str, tuple[int, int]], float | None]:
        try:
            if self._admin is None:
                self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(self._java_params())
            partitions = self._partitions()
            latest = self._offsets(partitions, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest())
            first = self._offsets(partitions, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.earliest())
            return {name: (latest[name], first[name]) for name in partitions}, self._retention(partitions)
        except Py4JJavaError as error:
            raise LookFailed(f"Kafka does not tell its offsets: {innermost(error)}") from None
        except Py4JError as error:
            raise LookFailed(f"the JVM does not answer: {str(error)[:300]}") from None

    def _java_params(self) -> Any:
        params = self._jvm.java.util.HashMap()
        for key, value in self._params.items():
            params.put(key, value)
        return params

    def _partitions(self) -> dict[str, Any]:
        """By name. Of topics that are subscribed to, all that there are now."""
        ((how, what),) = self._topics.items()
        if how == "assign":
            numbers = {topic: list(map(int, some)) for topic, some in json.loads(what).items()}
        else:
            names = [name.strip() for name in what.split(",")] if how == "subscribe" else self._matching(what)
            asked = self._jvm.java.util.ArrayList()
            for name in names:
                asked.add(name)
            described = self._admin.describeTopics(asked).allTopicNames().get()
            numbers = {name: range(described.get(name).partitions().size()) for name in names}
        partition = self._jvm.org.apache.kafka.common.TopicPartition
        return {
            f"{topic}/{number}": partition(topic, number)
            for topic, some in numbers.items()
            for number in some
        }

    def _matching(self, pattern: str) -> list[str]:
        names = self._admin.listTopics().names().get()
        matches = self._jvm.java.util.regex.Pattern.matches
        return [str(name) for name in names if matches(pattern, name)]

    def _offsets(self, partitions: Mapping[str, Any], spec: Any) -> dict[str, int]:
        asked = self._jvm.java.util.HashMap()
        for partition in partitions.values():
            asked.put(partition, spec)
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if self._committed_only else levels.READ_UNCOMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        found = self._admin.listOffsets(asked, options).all().get()
        return {name: found.get(partition).offset() for name, partition in partitions.items()}

    def _retention(self, partitions: Mapping[str, Any]) -> float | None:
        """None also where nobody may know."""
        topics = {name.rpartition("/")[0] for name in partitions}
        with contextlib.suppress(Py4JJavaError):
            return shortest([retention_of(self._jvm, self._admin, topic) for topic in sorted(topics)]).seconds
        return None
