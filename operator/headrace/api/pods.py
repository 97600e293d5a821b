"""Driver and executors: the settings of a pod that people need, and a patch for the rest."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import WithJsonSchema

from headrace.api.edits import Remove, SetValue
from headrace.api.forms import Form, as_text, free_text
from headrace.api.model import ApiModel, Broken, Items, live_field, plain_field, restart_field, rule, section
from headrace.api.names import DnsLabel, EnvName, ObjectName
from headrace.api.quantities import Memory, Quantity, memory_text

# Parts of the Pod schema that are passed on as they are: the API server checks them when the pod is made.
RawObject = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]

LABEL_VALUE = Form(
    expects="a label value: at most 63 letters, digits, '-', '_' and '.'",
    pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
    example="streaming",
    min_length=0,
    max_length=63,
    suggest=as_text,
)
ANNOTATION_VALUE = free_text("a text", max_length=16384)
ENV_VALUE = free_text("a text", max_length=32768, example="value")
MOUNT_PATH = Form(
    expects="an absolute path in the container, like /data",
    pattern=r"^/[^:\n]*$",
    example="/data",
    max_length=1024,
    suggest=lambda value: f"/{(as_text(value) or 'data').lstrip('./')}",
)
SUB_PATH = Form(
    expects="a relative path inside the volume",
    pattern=r"^[^/\n][^\n]*$",
    example="data",
    max_length=1024,
    suggest=lambda value: (as_text(value) or "").lstrip("/"),
)
TOLERATION_TEXT = free_text("a text", max_length=253)

# What the JVM and a Python worker need beside the heap, whatever its size.
LEAST_OVERHEAD = Memory("384Mi")
# Some five times what an executor of usual size holds in memory; nodes have 50 GiB and more.
DEFAULT_SCRATCH = Memory("10Gi")

Labels = dict[str, Annotated[str, LABEL_VALUE]]
Annotations = dict[str, Annotated[str, ANNOTATION_VALUE]]


class EnvVar(ApiModel):
    """One environment variable."""

    name: EnvName = plain_field("Name of the variable.")
    value: Annotated[str, ENV_VALUE] | None = plain_field("Its value.", default=None)
    value_from: RawObject | None = plain_field(
        "Where its value comes from, as in a Pod: `secretKeyRef`, `configMapKeyRef`, `fieldRef`, …",
        default=None,
    )

    @rule(
        cel="!(has(self.value) && has(self.valueFrom))",
        message="value and valueFrom exclude each other",
    )
    def one_value(self) -> Broken | None:
        if self.value is None or self.value_from is None:
            return None
        return Broken(
            message=f"{self.name} has both value and valueFrom",
            at=("value",),
            fix="remove value, or valueFrom",
            edits=(Remove(("value",)),),
        )


class EnvReference(ApiModel):
    """A Secret or ConfigMap whose keys become environment variables."""

    name: ObjectName = plain_field("Name of the object.")
    optional: bool = plain_field("Start also when it does not exist.", default=False)


class EnvSource(ApiModel):
    """Environment variables from all keys of a Secret or ConfigMap."""

    prefix: EnvName | None = plain_field("Put before each name.", default=None)
    secret_ref: EnvReference | None = plain_field("The Secret.", default=None)
    config_map_ref: EnvReference | None = plain_field("The ConfigMap.", default=None)


class Toleration(ApiModel):
    """A taint of nodes that the pod accepts, as in a Pod."""

    key: Annotated[str, TOLERATION_TEXT] | None = plain_field(
        "Key of the taint; none means every key.", default=None
    )
    operator: Literal["Equal", "Exists"] = plain_field("How the value is compared.", default="Equal")
    value: Annotated[str, TOLERATION_TEXT] | None = plain_field("Value of the taint.", default=None)
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = plain_field(
        "Effect of the taint; none means every effect.", default=None
    )
    toleration_seconds: int | None = plain_field(
        "How long a NoExecute taint is tolerated; none means for ever.", default=None, ge=0, le=10**9
    )


class Volume(ApiModel):
    """A volume, as in a Pod: its name and one source (`secret`, `persistentVolumeClaim`, `emptyDir`, …)."""

    model_config = {"extra": "allow", "json_schema_extra": {"x-kubernetes-preserve-unknown-fields": True}}

    name: DnsLabel = plain_field("Name of the volume, for `volumeMounts`.")


class VolumeMount(ApiModel):
    """Where a volume appears in the container."""

    name: DnsLabel = plain_field("Name of the volume.")
    mount_path: Annotated[str, MOUNT_PATH] = plain_field("Absolute path in the container.")
    sub_path: Annotated[str, SUB_PATH] | None = plain_field(
        "A path inside the volume to mount instead of its root.", default=None
    )
    read_only: bool = plain_field("Mount it read-only.", default=False)


class Resources(ApiModel):
    """What the container asks of a node beyond `cores` and `memory`."""

    requests: dict[str, Quantity] = restart_field(
        """More requests, such as `ephemeral-storage: 20Gi`. A `cpu` here replaces the request made from
        `cores`, so that a driver with one core can ask for `cpu: 500m`.""",
        default={},
        max_length=32,
    )
    limits: dict[str, Quantity] = restart_field(
        "More limits, such as `nvidia.com/gpu: 1`. There is no CPU limit unless one is set here.",
        default={},
        max_length=32,
    )

    @rule(
        cel="!(has(self.requests) && 'memory' in self.requests) && "
        "!(has(self.limits) && 'memory' in self.limits)",
        message="memory is set by the field memory, as request and limit",
    )
    def memory_is_elsewhere(self) -> Broken | None:
        places = [name for name in ("requests", "limits") if "memory" in getattr(self, name)]
        if not places:
            return None
        return Broken(
            message="memory is not set here, but by the field memory beside resources",
            at=(places[0], "memory"),
            fix="remove it; the field memory is request and limit in one",
            edits=tuple(Remove((place, "memory")) for place in places),
        )


class PodSettings(ApiModel):
    """What driver and executors have in common."""

    cores: int = restart_field(
        "Cores: the tasks it runs at a time, and its CPU request.", default=1, ge=1, le=256
    )
    memory: Memory = restart_field(
        """Memory of the container, as request and limit: what a quota counts. The JVM heap is this less
        `memoryOverhead`.""",
        default=Memory("2Gi"),
    )
    memory_overhead: Memory | None = restart_field(
        """The part of `memory` kept out of the JVM heap, for Python workers, RocksDB and the JVM itself.
        Default: 40 % of `memory`, and at least 384Mi, but never more than half.""",
        default=None,
    )
    scratch: Memory | None = restart_field(
        """The most disk that each scratch volume of the pod may take: local copies of the state and shuffle
        files, `/tmp`, the working directory. A pod that takes more is evicted, and its neighbours are not.
        Default: 10Gi. A volume of your own that is named `spark-local-dir-1` and mounted takes the place of
        the executors' first one.""",
        default=None,
    )
    resources: Resources = section("What it asks of a node beyond cores and memory.", default=Resources())
    service_account: ObjectName | None = restart_field(
        """ServiceAccount of the pod; with workload identity it is also who reads and writes the store.
        Default: the platform's for the driver, the driver's for the executors.""",
        default=None,
    )
    labels: Labels = restart_field("More labels of the pod.", default={}, max_length=64)
    annotations: Annotations = restart_field("More annotations of the pod.", default={}, max_length=64)
    env: Items[EnvVar] = restart_field("Environment variables.", default=(), max_length=256, list_key="name")
    env_from: Items[EnvSource] = restart_field(
        "Environment variables from Secrets and ConfigMaps.", default=(), max_length=64
    )
    volumes: Items[Volume] = restart_field("Volumes of the pod.", default=(), max_length=64, list_key="name")
    volume_mounts: Items[VolumeMount] = restart_field(
        "Where the volumes appear.", default=(), max_length=64, list_key="mountPath"
    )
    node_selector: Labels = restart_field("Labels a node must have.", default={}, max_length=64)
    tolerations: Items[Toleration] = restart_field("Taints that are accepted.", default=(), max_length=64)
    affinity: RawObject | None = restart_field("Affinity, as in a Pod.", default=None)
    priority_class_name: ObjectName | None = restart_field("PriorityClass of the pod.", default=None)
    scheduler_name: ObjectName | None = restart_field("Scheduler, if not the default one.", default=None)
    pod_security_context: RawObject | None = restart_field(
        "Security context of the pod, as in a Pod; merged over Headrace's restricted one.", default=None
    )
    security_context: RawObject | None = restart_field(
        "Security context of the container, as in a Pod; merged over Headrace's restricted one.", default=None
    )
    patch: RawObject | None = restart_field(
        """The way out: a JSON merge patch of the whole pod, applied last. For what has no field here. It is
        not checked by Headrace, and can break what Headrace relies on.""",
        default=None,
    )

    @property
    def scratch_limit(self) -> Memory:
        return self.scratch if self.scratch is not None else DEFAULT_SCRATCH

    @property
    def default_overhead_bytes(self) -> int:
        # A very small container still gets a heap.
        return min(max(self.memory.bytes * 2 // 5, LEAST_OVERHEAD.bytes), self.memory.bytes // 2)

    @rule(
        cel="!has(self.memoryOverhead) || quantity(self.memoryOverhead).isLessThan(quantity(self.memory))",
        message="memoryOverhead is a part of memory and must be smaller",
    )
    def overhead_leaves_a_heap(self) -> Broken | None:
        if self.memory_overhead is None or self.memory_overhead.bytes < self.memory.bytes:
            return None
        return Broken(
            message=f"{self.memory_overhead} of {self.memory} memory leaves nothing for the JVM heap",
            at=("memoryOverhead",),
            fix="make it smaller than memory, or remove it: 40 % of memory is the default",
            edits=(SetValue(("memoryOverhead",), memory_text(self.memory.bytes * 2 // 5)),),
        )

    @rule(
        cel="!has(self.volumeMounts) || "
        "self.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name))",
        message="every volumeMount names a volume of the same pod",
    )
    def mounts_have_volumes(self) -> Broken | None:
        known = {volume.name for volume in self.volumes}
        for index, mount in enumerate(self.volume_mounts):
            if mount.name not in known:
                return Broken(
                    message=f"there is no volume {mount.name!r} to mount",
                    at=("volumeMounts", index, "name"),
                    fix="add the volume to volumes, or remove the mount",
                    edits=(Remove(("volumeMounts", index)),),
                )
        return None


class Driver(PodSettings):
    """The driver pod: the Python program, Spark's planner, and the agent."""

    evictions: Literal["Allow", "Block"] = live_field(
        """What an eviction does, as when a node is drained. `Allow`: the driver finishes its batch and
        leaves, and the next attempt follows on another node. `Block`: a PodDisruptionBudget keeps it where it
        is, so that whoever drains the node waits until the job has ended or is suspended.""",
        default="Allow",
    )


class Executors(PodSettings):
    """The executor pods. They come and go without a restart of the driver."""

    count: int = live_field(
        """How many executors. With `autoscaling.mode: Auto` this is only where it starts; `kubectl scale` and
        a HorizontalPodAutoscaler write this field. To stop a job, set `suspend` instead.""",
        default=1,
        ge=1,
        le=1000,
    )
