"""The StreamJob: a team writes one, and Headrace runs it."""

from __future__ import annotations

from typing import Annotated, Literal

from headrace.api.application import Application
from headrace.api.edits import Remove, SetValue
from headrace.api.forms import Form, as_text, free_text
from headrace.api.kafka import Kafka
from headrace.api.lifecycle import Logs, Restart, Savepoints, StartFrom, Trigger, Upgrade, Watchdog
from headrace.api.metadata import ObjectMeta, badly_named
from headrace.api.model import (
    ApiModel,
    Broken,
    Items,
    live_field,
    plain_field,
    restart_field,
    rule,
    section,
    transition_rule,
)
from headrace.api.names import API_VERSION, JOB_NAME, JOB_NAME_MAX
from headrace.api.pods import LEAST_OVERHEAD, Driver, Executors
from headrace.api.quantities import Duration
from headrace.api.references import NamedObject
from headrace.api.scaling import Autoscaling, Objectives
from headrace.api.sparkconf import SparkConf
from headrace.api.status import StreamJobStatus
from headrace.api.storage import Checkpoint, State

IMAGE = Form(
    expects="a container image like registry.example.com/team/job:1.4.2",
    pattern=r"^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[a-f0-9]{64})?$",
    example="registry.example.com/team/job:1.4.2",
    max_length=512,
    suggest=lambda value: (as_text(value) or "").split("://")[-1].replace(" ", "-").lower(),
)

NONCE = free_text("a text", max_length=64, example="1")


class StreamJobSpec(ApiModel):
    """What to run, where its state is, how big it is, and how it may change."""

    application: Application = section("The code.")
    image: Annotated[str, IMAGE] | None = restart_field(
        """Container image of driver and executors: any with Spark 4.1 to 4.3 and Python; Headrace adds what
        it needs. Default: the platform's. Each run keeps the digest it started with.""",
        default=None,
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = restart_field(
        "When to pull the image. Default: Kubernetes' own rule.", default=None
    )
    image_pull_secrets: Items[NamedObject] = restart_field(
        "Secrets for a private registry.", default=(), max_length=16, list_key="name"
    )
    spark_conf: SparkConf = restart_field(
        """Settings of Spark. Those that Headrace owns are refused, with the reason and the field to use
        instead: see the list of owned settings.""",
        default={},
    )
    checkpoint: Checkpoint = section("The store of checkpoints and savepoints.", default=Checkpoint())
    state: State = section("The state of the queries.", default=State())
    driver: Driver = section("The driver pod.", default=Driver())
    executors: Executors = section("The executor pods.", default=Executors())
    kafka: Kafka | None = section("How Kafka is reached.", default=None)
    trigger: Trigger = section("When the queries look for new data.", default=Trigger())
    autoscaling: Autoscaling | None = section(
        "Executors follow the lag. Without it there are `executors.count` of them.", default=None
    )
    objectives: Objectives | None = section("What the job promises its users.", default=None)
    savepoints: Savepoints = section(
        "When savepoints are taken and how long they are kept.", default=Savepoints()
    )
    upgrade: Upgrade = section("How a new version takes over.", default=Upgrade())
    start_from: StartFrom | None = section(
        """Where the job starts when it has no run of its own to go on from. It is read then, and only then:
        an edit later has no effect.""",
        default=None,
    )
    suspend: bool = live_field(
        "Drain the driver and keep the checkpoint; `false` goes on from there.", default=False
    )
    restart_nonce: Annotated[str, NONCE] | None = restart_field(
        """Any new value makes a new run although nothing else has changed, for example to fetch newer code
        from the same `application.file`.""",
        default=None,
    )
    restart: Restart = section("What happens when a driver fails.", default=Restart())
    watchdog: Watchdog = section("What happens when a micro-batch does not end.", default=Watchdog())
    logs: Logs = section("What is kept beside the checkpoints for those who look back.", default=Logs())
    drain_timeout: Duration = live_field(
        "How long a drain waits for the running micro-batch. Then the driver is stopped in the middle of it.",
        default=Duration("2m"),
    )
    deletion_policy: Literal["Retain", "Delete"] = live_field(
        """What happens to the checkpoints when the StreamJob is deleted. With `Delete` the driver drains, a
        pod of the job removes all its runs from the store, and only then is the StreamJob gone; a finalizer
        sees to that, so it takes a running operator. If the store refuses, a condition says why; `Retain`,
        set at any time, lets the job go. Savepoints have a policy of their own.""",
        default="Retain",
    )
    lost_node: Literal["Wait", "Force"] = live_field(
        """When the driver's node is lost, nobody can tell whether the driver still writes. `Wait` starts no
        other until the node is back or gone. `Force` does at once: only for sinks that fence by epoch.""",
        default="Wait",
    )

    @rule(
        cel="!has(self.autoscaling) || self.autoscaling.mode == 'Off' || "
        "(self.executors.count >= self.autoscaling.min && self.executors.count <= self.autoscaling.max)",
        message="executors.count must lie between autoscaling.min and autoscaling.max, "
        "unless autoscaling.mode is Off",
    )
    def count_within_limits(self) -> Broken | None:
        scaling, count = self.autoscaling, self.executors.count
        if scaling is None or scaling.mode == "Off" or scaling.min <= count <= scaling.max:
            return None
        nearest = min(max(count, scaling.min), scaling.max)
        return Broken(
            message=f"count {count} lies outside autoscaling: from min {scaling.min} to max {scaling.max}",
            at=("executors", "count"),
            fix=f"set executors.count: {nearest}, or widen the limits",
            edits=(SetValue(("executors", "count"), nearest),),
        )

    @rule(
        cel="!has(self.autoscaling) || self.autoscaling.mode != 'Auto' || self.trigger.mode == 'Continuous'",
        message="autoscaling.mode Auto needs trigger.mode Continuous",
    )
    def scaling_needs_continuous(self) -> Broken | None:
        if self.autoscaling is None or self.autoscaling.mode != "Auto" or self.trigger.mode == "Continuous":
            return None
        return Broken(
            message="an AvailableNow job ends by itself, so there is no lag to follow",
            at=("autoscaling", "mode"),
            fix='set autoscaling.mode: "Off", or remove autoscaling',
            edits=(SetValue(("autoscaling", "mode"), "Off"),),
        )

    @rule(
        cel="!has(self.autoscaling) || !has(self.autoscaling.idle) || self.trigger.mode == 'Continuous'",
        message="autoscaling.idle needs trigger.mode Continuous",
    )
    def sleep_needs_continuous(self) -> Broken | None:
        scaling = self.autoscaling
        if scaling is None or scaling.idle is None or self.trigger.mode == "Continuous":
            return None
        return Broken(
            message="an AvailableNow job ends by itself when its work is done, and has no need of sleep",
            at=("autoscaling", "idle"),
            fix="remove autoscaling.idle; trigger.schedule says when the job runs again",
            edits=(Remove(("autoscaling", "idle")),),
        )

    @rule(
        cel="!has(self.state.memory) || !has(self.executors.memoryOverhead) || "
        "!quantity(self.state.memory).isGreaterThan(quantity(self.executors.memoryOverhead))",
        message="state.memory lies in executors.memoryOverhead and must not be larger",
    )
    def state_fits_overhead(self) -> Broken | None:
        bound, overhead = self.state.memory, self.executors.memory_overhead
        if bound is None or overhead is None or bound.bytes <= overhead.bytes:
            return None
        return Broken(
            message=f"state.memory ({bound}) does not fit into executors.memoryOverhead ({overhead})",
            at=("state", "memory"),
            fix="make it smaller, or remove it: half of memoryOverhead is the default",
            edits=(Remove(("state", "memory")),),
        )

    @rule(
        cel="!has(self.state.memory) || has(self.executors.memoryOverhead) || "
        "(!quantity(self.state.memory).add(quantity(self.state.memory))"
        ".isGreaterThan(quantity(self.executors.memory)) && "
        f"(!quantity(self.state.memory).isGreaterThan(quantity('{LEAST_OVERHEAD}')) || "
        f"!quantity(self.state.memory){'.add(quantity(self.state.memory))' * 4}"
        ".isGreaterThan(quantity(self.executors.memory).add(quantity(self.executors.memory)))))",
        message="state.memory lies beside the heap, and must not be larger than what executors.memory leaves "
        "there: two fifths, or executors.memoryOverhead",
    )
    def state_fits_beside_the_heap(self) -> Broken | None:
        bound, memory = self.state.memory, self.executors.memory
        if bound is None or self.executors.memory_overhead is not None:
            return None
        beside_the_heap = self.executors.default_overhead_bytes
        if bound.bytes <= beside_the_heap:
            return None
        return Broken(
            message=f"state.memory ({bound}) does not fit beside the heap: of executors.memory ({memory}) "
            f"{beside_the_heap // 2**20}Mi are left there",
            at=("state", "memory"),
            fix="make it smaller, or remove it: half of what is left is the default; or say "
            "executors.memoryOverhead",
            edits=(Remove(("state", "memory")),),
        )

    @rule(
        cel="!self.logs.sparkEvents || !has(self.sparkConf) || "
        "self.sparkConf.all(k, !k.startsWith('spark.eventLog.'))",
        message="logs.sparkEvents sets spark.eventLog.*; use one of the two",
    )
    def one_event_log(self) -> Broken | None:
        keys = [key for key in self.spark_conf if key.startswith("spark.eventLog.")]
        if not self.logs.spark_events or not keys:
            return None
        return Broken(
            message=f"{keys[0]} is set by logs.sparkEvents, too",
            at=("sparkConf", keys[0]),
            fix="remove it, or logs.sparkEvents to send the event log elsewhere",
            edits=tuple(Remove(("sparkConf", key)) for key in keys),
        )


class StreamJob(ApiModel):
    """A Spark Structured Streaming job that Headrace runs, heals, scales and upgrades."""

    api_version: Literal["headrace.dev/v1alpha1"] = plain_field(
        "The version of the API.", default=API_VERSION
    )
    kind: Literal["StreamJob"] = plain_field("The kind of object.", default="StreamJob")
    metadata: ObjectMeta = plain_field("Name, namespace, labels, …")
    spec: StreamJobSpec = plain_field("What to run.")
    status: StreamJobStatus | None = plain_field("What Headrace knows and does about it.", default=None)

    @rule(
        cel=f"self.metadata.name.size() <= {JOB_NAME_MAX} && "
        f"self.metadata.name.matches('{JOB_NAME.pattern}')",
        message=f"a job's name has at most {JOB_NAME_MAX} lower-case letters, digits and '-', and starts "
        "with a letter: the names of its pods, Services and StatefulSets are made from it",
    )
    def name_fits(self) -> Broken | None:
        name = self.metadata.name
        problem = JOB_NAME.problem_with(name)
        if problem is None:
            return None
        return badly_named(name, f"{name!r} {problem}", longest=JOB_NAME_MAX)

    @transition_rule(
        cel="!has(oldSelf.status) || !has(oldSelf.status.run) || "
        "(has(self.spec.checkpoint.location) == has(oldSelf.spec.checkpoint.location) && "
        "(!has(self.spec.checkpoint.location) || "
        "self.spec.checkpoint.location == oldSelf.spec.checkpoint.location))",
        message="checkpoint.location cannot change once the job has a run: take a savepoint and start a new "
        "job from its path",
    )
    def location_stays(self, old: StreamJob) -> Broken | None:
        before, after = old.spec.checkpoint.location, self.spec.checkpoint.location
        if old.status is None or old.status.run is None or before == after:
            return None
        location = ("spec", "checkpoint", "location")
        return Broken(
            message="checkpoint.location cannot change once the job has a run",
            at=location,
            fix=f"put it back to {before or 'the default'}; to move a job, take a savepoint and start a new "
            "job from its path",
            edits=(Remove(location),) if before is None else (SetValue(location, before),),
        )
