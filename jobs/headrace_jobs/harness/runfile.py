"""The run file: what one attempt has to run, written by the operator or by `headrace dev`.

Parsing is strict: an unknown or missing field means that the two sides differ in version, and a guess
there could cost data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal


class RunFileInvalid(Exception):
    """The run file cannot be used; the message names the field."""


@dataclass(frozen=True)
class Job:
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class Application:
    file: str | None
    module: str | None
    args: tuple[str, ...]
    py_files: tuple[str, ...]

    @property
    def label(self) -> str:
        """How messages call it."""
        return Path(self.file).name if self.file else f"-m {self.module}"


@dataclass(frozen=True)
class Trigger:
    mode: Literal["Continuous", "AvailableNow"]
    interval_seconds: float | None


@dataclass(frozen=True)
class AgentAddress:
    host: str
    port: int
    token_file: str | None


@dataclass(frozen=True)
class Watchdog:
    batch_timeout_seconds: float
    action: Literal["Restart", "Report"]


@dataclass(frozen=True)
class KafkaLogin:
    mechanism: str
    username_file: str
    password_file: str


@dataclass(frozen=True)
class KafkaCertificate:
    certificate_file: str
    private_key_file: str


@dataclass(frozen=True)
class Kafka:
    """How Kafka is reached. Only paths of secrets, never secrets: this file is in a ConfigMap."""

    bootstrap_servers: str | None
    protocol: str
    sasl: KafkaLogin | None
    ca_file: str | None
    client: KafkaCertificate | None


@dataclass(frozen=True)
class Start:
    """Where sources begin in queries that have no checkpoint yet; one of the two."""

    timestamp_millis: int | None = None
    # By query: topic -> partition -> offset.
    offsets: dict[str, dict[str, dict[str, int]]] | None = None


@dataclass(frozen=True)
class Rehearsal:
    """How a candidate is tried on a copy of the incumbent's state: docs/concepts/rehearsal.md."""

    from_run: int
    batches: int
    time_limit_seconds: float
    call_foreach_batch: bool
    state_compatible: bool
    standby_seconds: float | None
    """How long it waits when it has passed; None: it ends."""


@dataclass(frozen=True)
class RunFile:
    job: Job
    run: int
    attempt: int
    epoch: int
    uid: str
    store: str
    application: Application
    spark_conf: dict[str, str]
    trigger: Trigger
    kafka: Kafka | None
    start: Start | None
    agent: AgentAddress
    termination_message_path: str
    process_file: str
    drain_timeout_seconds: float
    watch_parent: bool
    watchdog: Watchdog
    repartition: int | None
    """Into how many partitions the state is split before the queries start; None: it stays as it is."""
    mode: Literal["active", "rehearse"]
    rehearsal: Rehearsal | None

    @property
    def directory(self) -> str:
        """Where it works, below the store: a rehearsal never touches its run."""
        return f"run-{self.run}" if self.mode == "active" else f"rehearsal-{self.run}"

    @property
    def run_path(self) -> str:
        return f"{self.store.rstrip('/')}/{self.directory}"

    def activated(self, *, run: int, attempt: int, epoch: int) -> RunFile:
        """What a candidate works by when it has become an attempt of the run."""
        return replace(self, mode="active", run=run, attempt=attempt, epoch=epoch)

    def checkpoint_of(self, query: str) -> str:
        return f"{self.run_path}/queries/{query}"


def read_run_file(path: Path) -> RunFile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RunFileInvalid(f"{path}: cannot be read: {error.strerror}") from None
    return parse_run_file(text)


def parse_run_file(text: str) -> RunFile:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise RunFileInvalid(f"not JSON: {error}") from None
    root = _Section("", content)
    mode = root.one_of("mode", "active", "rehearse")
    run_file = RunFile(
        job=_job(root.section("job")),
        run=root.whole("run", at_least=1),
        attempt=root.whole("attempt", at_least=1),
        epoch=root.whole("epoch", at_least=1 if mode == "active" else 0),
        uid=root.text("uid"),
        store=_store(root),
        application=_application(root.section("application")),
        spark_conf=root.text_map("sparkConf"),
        trigger=_trigger(root.section("trigger")),
        kafka=_kafka(root.section_or_none("kafka")),
        start=_start(root.section_or_none("start")),
        agent=_agent(root.section("agent")),
        termination_message_path=root.text("terminationMessagePath"),
        process_file=root.text("processFile"),
        drain_timeout_seconds=root.positive("drainTimeoutSeconds"),
        watch_parent=root.flag("watchParent"),
        watchdog=_watchdog(root.section("watchdog")),
        repartition=root.whole_or_none("repartition", at_least=1),
        mode=mode,
        rehearsal=_rehearsal(root.section_or_none("rehearsal")),
    )
    root.refuse_the_rest()
    _check_mode(run_file)
    return run_file


def _check_mode(run_file: RunFile) -> None:
    if (run_file.mode == "rehearse") != (run_file.rehearsal is not None):
        raise RunFileInvalid("rehearsal: belongs to mode rehearse, and only there")
    if run_file.rehearsal is None:
        return
    if run_file.epoch != 0:
        raise RunFileInvalid(f"epoch: {run_file.epoch} is not 0, and a rehearsal may not write")
    if run_file.rehearsal.from_run == run_file.run:
        raise RunFileInvalid(f"rehearsal.fromRun: run {run_file.run} cannot be rehearsed on itself")


def _job(section: _Section) -> Job:
    job = Job(namespace=section.text("namespace"), name=section.text("name"), uid=section.text("uid"))
    section.refuse_the_rest()
    return job


def _store(root: _Section) -> str:
    store = root.text("store")
    if "://" not in store:
        raise RunFileInvalid(
            f"store: {store!r} is not a URL such as file:///data/orders or s3://bucket/orders"
        )
    return store


def _application(section: _Section) -> Application:
    application = Application(
        file=section.text_or_none("file"),
        module=section.text_or_none("module"),
        args=section.texts("args"),
        py_files=section.texts("pyFiles"),
    )
    section.refuse_the_rest()
    if (application.file is None) == (application.module is None):
        raise RunFileInvalid("application: give either file or module")
    return application


def _trigger(section: _Section) -> Trigger:
    trigger = Trigger(
        mode=section.one_of("mode", "Continuous", "AvailableNow"),
        interval_seconds=section.positive_or_none("intervalSeconds"),
    )
    section.refuse_the_rest()
    return trigger


def _kafka(section: _Section | None) -> Kafka | None:
    if section is None:
        return None
    kafka = Kafka(
        bootstrap_servers=section.text_or_none("bootstrapServers"),
        protocol=section.text("protocol"),
        sasl=_kafka_login(section.section_or_none("sasl")),
        ca_file=section.text_or_none("caFile"),
        client=_kafka_certificate(section.section_or_none("client")),
    )
    section.refuse_the_rest()
    return kafka


def _kafka_login(section: _Section | None) -> KafkaLogin | None:
    if section is None:
        return None
    login = KafkaLogin(
        mechanism=section.text("mechanism"),
        username_file=section.text("usernameFile"),
        password_file=section.text("passwordFile"),
    )
    section.refuse_the_rest()
    return login


def _kafka_certificate(section: _Section | None) -> KafkaCertificate | None:
    if section is None:
        return None
    certificate = KafkaCertificate(
        certificate_file=section.text("certificateFile"), private_key_file=section.text("privateKeyFile")
    )
    section.refuse_the_rest()
    return certificate


def _start(section: _Section | None) -> Start | None:
    if section is None:
        return None
    start = Start(
        timestamp_millis=section.whole_or_none("timestampMillis", at_least=0),
        offsets=section.offsets_or_none("offsets"),
    )
    section.refuse_the_rest()
    return start


def _agent(section: _Section) -> AgentAddress:
    agent = AgentAddress(
        host=section.text("host"),
        port=section.whole("port", at_least=0),
        token_file=section.text_or_none("tokenFile"),
    )
    section.refuse_the_rest()
    return agent


def _watchdog(section: _Section) -> Watchdog:
    watchdog = Watchdog(
        batch_timeout_seconds=section.positive("batchTimeoutSeconds"),
        action=section.one_of("action", "Restart", "Report"),
    )
    section.refuse_the_rest()
    return watchdog


def _rehearsal(section: _Section | None) -> Rehearsal | None:
    if section is None:
        return None
    rehearsal = Rehearsal(
        from_run=section.whole("fromRun", at_least=1),
        batches=section.whole("batches", at_least=1),
        time_limit_seconds=section.positive("timeLimitSeconds"),
        call_foreach_batch=section.flag("callForeachBatch"),
        state_compatible=section.flag("stateCompatible"),
        standby_seconds=section.positive_or_none("standbySeconds"),
    )
    section.refuse_the_rest()
    return rehearsal


class _Section:
    """One JSON object; each accessor takes a field out, so that what is left at the end is unknown."""

    def __init__(self, path: str, content: Any) -> None:
        if not isinstance(content, dict):
            raise RunFileInvalid(f"{path or 'run file'}: must be an object")
        self._path = path
        self._left: dict[str, Any] = dict(content)

    def section(self, name: str) -> _Section:
        return _Section(self._at(name), self._take(name))

    def section_or_none(self, name: str) -> _Section | None:
        return None if self._is_none(name) else self.section(name)

    def text(self, name: str) -> str:
        value = self._take(name)
        if not isinstance(value, str) or not value:
            raise self._wrong(name, value, "a text that is not empty")
        return value

    def text_or_none(self, name: str) -> str | None:
        return None if self._is_none(name) else self.text(name)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._take(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, value, "a list of texts")
        return tuple(value)

    def text_map(self, name: str) -> dict[str, str]:
        value = self._take(name)
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            # The value is not shown: Spark settings may hold credentials.
            raise RunFileInvalid(f"{self._at(name)}: must be a map of texts to texts")
        return value

    def whole(self, name: str, *, at_least: int) -> int:
        value = self._take(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise self._wrong(name, value, f"a whole number of at least {at_least}")
        return value

    def whole_or_none(self, name: str, *, at_least: int) -> int | None:
        return None if self._is_none(name) else self.whole(name, at_least=at_least)

    def offsets_or_none(self, name: str) -> dict[str, dict[str, dict[str, int]]] | None:
        if self._is_none(name):
            return None
        value = self._take(name)
        try:
            return {
                query: {
                    topic: {part: int(at) for part, at in parts.items()} for topic, parts in topics.items()
                }
                for query, topics in value.items()
            }
        except (AttributeError, TypeError, ValueError):
            raise self._wrong(name, value, "offsets by query, topic and partition") from None

    def positive(self, name: str) -> float:
        value = self._take(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise self._wrong(name, value, "a number above 0")
        return float(value)

    def positive_or_none(self, name: str) -> float | None:
        return None if self._is_none(name) else self.positive(name)

    def flag(self, name: str) -> bool:
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def one_of(self, name: str, *allowed: str) -> Any:
        value = self._take(name)
        if value not in allowed:
            raise self._wrong(name, value, " or ".join(allowed))
        return value

    def refuse_the_rest(self) -> None:
        if self._left:
            unknown = ", ".join(sorted(self._at(name) for name in self._left))
            raise RunFileInvalid(f"unknown: {unknown}. Is the operator newer than the job's image?")

    def _is_none(self, name: str) -> bool:
        if name in self._left and self._left[name] is None:
            del self._left[name]
            return True
        return False

    def _take(self, name: str) -> Any:
        if name not in self._left:
            raise RunFileInvalid(f"{self._at(name)}: is missing")
        return self._left.pop(name)

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _wrong(self, name: str, value: Any, wanted: str) -> RunFileInvalid:
        return RunFileInvalid(f"{self._at(name)}: {value!r} is not {wanted}")
