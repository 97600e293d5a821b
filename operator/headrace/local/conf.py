"""The manifest's sizes as they make sense on one machine."""

from __future__ import annotations

from headrace.api import StreamJobSpec

# Enough partitions to show that a job shuffles, few enough that a batch takes a fraction of a second.
DEV_STATE_PARTITIONS = 2
_STATE_MEMORY = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"


def dev_spark_conf(spec: StreamJobSpec, *, cpus: int, memory_bytes: int, ui: bool) -> dict[str, str]:
    """Spark's settings for `headrace dev`. The user's own come last and win."""
    wanted_cores = spec.executors.count * spec.executors.cores
    heap_mb = min(spec.driver.memory.bytes + spec.executors.memory.bytes, memory_bytes // 2) // 2**20
    state = spec.state.memory
    bound = {} if state is None else {_STATE_MEMORY: str(state.mebibytes)}
    return {
        "spark.master": f"local[{max(1, min(cpus, wanted_cores))}]",
        "spark.driver.memory": f"{max(heap_mb, 512)}m",
        # Nothing of a laptop run is for the network.
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # A laptop run lives for minutes: a fast start is worth more than the last third of speed.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": str(state_partitions(spec)),
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        **bound,
        **spec.spark_conf,
    }


def state_partitions(spec: StreamJobSpec) -> int:
    """As the manifest asks; the default is one for clusters."""
    return spec.state.partitions if "partitions" in spec.state.model_fields_set else DEV_STATE_PARTITIONS


# What a manifest may say that has no meaning on one machine; said once at start, so that nobody waits for it.
def fields_without_effect(spec: StreamJobSpec) -> tuple[str, ...]:
    """The fields that the manifest sets and `headrace dev` does not act on, in the manifest's words."""
    cluster_only = {
        "image": "spec.image",
        "autoscaling": "spec.autoscaling",
        "savepoints": "spec.savepoints",
    }
    told = [path for field, path in cluster_only.items() if field in spec.model_fields_set]
    location = spec.checkpoint.location if spec.checkpoint is not None else None
    if location is not None and not location.startswith("file:"):
        told.append("spec.checkpoint.location")
    return tuple(told)
