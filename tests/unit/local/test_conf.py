from headrace.api import StreamJobSpec
from headrace.local.conf import dev_spark_conf, fields_without_effect


def conf(spec: dict, *, cpus: int = 4, memory_gib: int = 16) -> dict[str, str]:
    parsed = StreamJobSpec.parse({"application": {"file": "job.py"}, **spec})
    return dev_spark_conf(parsed, cpus=cpus, memory_bytes=memory_gib * 2**30, ui=False)


def test_cores_follow_the_manifest_up_to_the_machine():
    assert conf({"executors": {"count": 1, "cores": 2}})["spark.master"] == "local[2]"
    assert conf({"executors": {"count": 8, "cores": 4}}, cpus=6)["spark.master"] == "local[6]"


def test_memory_never_takes_more_than_half_of_the_machine():
    assert conf({"executors": {"memory": "64Gi"}}, memory_gib=8)["spark.driver.memory"] == "4096m"


def test_partitions_are_few_unless_the_manifest_says():
    assert conf({})["spark.sql.shuffle.partitions"] == "2"
    assert conf({"state": {"partitions": 16}})["spark.sql.shuffle.partitions"] == "16"


def test_the_memory_of_the_state_is_bounded_as_the_manifest_says():
    key = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"
    assert conf({"state": {"memory": "256Mi"}})[key] == "256"
    assert key not in conf({}), "Spark's own bound holds"


def test_the_users_own_settings_win():
    assert conf({"sparkConf": {"spark.ui.enabled": "true"}})["spark.ui.enabled"] == "true"


def test_fields_without_effect_are_named():
    spec = StreamJobSpec.parse(
        {
            "application": {"file": "job.py"},
            "image": "acme/clicks:1",
            "autoscaling": {"max": 4},
            "checkpoint": {"location": "s3://bucket/x"},
        }
    )
    assert fields_without_effect(spec) == ("spec.image", "spec.autoscaling", "spec.checkpoint.location")
    assert fields_without_effect(StreamJobSpec.parse({"application": {"file": "job.py"}})) == ()
