"""What the golden files show, said as rules."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.api.names import JOB_NAME_MAX
from headrace.core.manifests import config_map, driver_pod, driver_service, token_secret
from headrace.core.manifests.pod import merged
from headrace.core.manifests.sizes import memory_shares
from headrace_jobs.harness.runfile import parse_run_file
from tests.unit.manifests.samples import FULL, PLATFORM, S3_CODE, an_attempt

EVERY_SPEC = {
    "typical": {},
    "full": FULL,
    "module": {"application": {"module": "acme.clicks"}},
    "s3-code": S3_CODE,
}


@pytest.fixture(params=EVERY_SPEC.values(), ids=EVERY_SPEC.keys())
def attempt(request: pytest.FixtureRequest):
    return an_attempt(**request.param)


def run_json(attempt: Any) -> dict[str, Any]:
    return json.loads(config_map(attempt, PLATFORM)["data"]["run.json"])


def template(attempt: Any) -> dict[str, Any]:
    return json.loads(config_map(attempt, PLATFORM)["data"]["executor.json"])


def test_the_harness_can_read_its_run_file(attempt: Any):
    read = parse_run_file(config_map(attempt, PLATFORM)["data"]["run.json"])
    assert (read.job.name, read.run, read.attempt, read.epoch) == ("clicks", 3, 2, 7)
    assert read.run_path == f"{attempt.store}/run-3"


def test_the_service_finds_this_driver_and_no_other(attempt: Any):
    selector = driver_service(attempt)["spec"]["selector"]
    assert selector.items() <= driver_pod(attempt, PLATFORM)["metadata"]["labels"].items()
    assert not selector.items() <= template(attempt)["metadata"]["labels"].items()


def test_executors_are_told_the_name_of_the_service(attempt: Any):
    service = driver_service(attempt)["metadata"]
    assert (
        run_json(attempt)["sparkConf"]["spark.driver.host"] == f"{service['name']}.{service['namespace']}.svc"
    )


def test_labels_of_headrace_cannot_be_taken_over(attempt: Any):
    assert driver_pod(attempt, PLATFORM)["metadata"]["labels"]["headrace.dev/role"] == "driver"


def test_every_object_dies_with_its_job(attempt: Any):
    made = [config_map(attempt, PLATFORM), driver_service(attempt), driver_pod(attempt, PLATFORM)]
    for thing in [*made, token_secret(attempt, token="t")]:
        assert [owner["uid"] for owner in thing["metadata"]["ownerReferences"]] == [attempt.job_uid]


def test_no_secret_is_in_the_config_map_or_the_pod():
    attempt = an_attempt(**FULL)
    text = json.dumps([config_map(attempt, PLATFORM), driver_pod(attempt, PLATFORM)])
    assert "fs.s3a.secret.key" not in text
    containers = [
        one for pod in pods(attempt) for one in [*pod.get("initContainers", ()), *pod["containers"]]
    ]
    assert not [each for one in containers for each in one.get("env", ()) if each["name"].startswith("AWS_")]


def paths_in(section: Any) -> list[str]:
    if isinstance(section, dict):
        return [path for value in section.values() for path in paths_in(value)]
    return [section] if isinstance(section, str) and section.startswith("/") else []


def test_kafka_finds_the_same_files_in_driver_and_executors():
    attempt = an_attempt(**FULL)
    told = paths_in(run_json(attempt)["kafka"])
    assert len(told) == 5
    for pod in (driver_pod(attempt, PLATFORM), template(attempt)):
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        files = {}
        for mount in pod["spec"]["containers"][0]["volumeMounts"]:
            source = volumes[mount["name"]].get("secret") or volumes[mount["name"]].get("configMap") or {}
            for item in source.get("items", ()):
                where = source.get("secretName") or source["name"]
                files[f"{mount['mountPath']}/{item['path']}"] = (where, item["key"])
        assert [files[path] for path in told] == [
            ("private-ca", "ca.crt"),
            ("clicks-tls", "tls.crt"),
            ("clicks-tls", "tls.key"),
            ("kafka-user", "password"),
            ("kafka-user", "user"),
        ]


def test_a_job_without_secrets_of_kafka_mounts_none():
    attempt = an_attempt(kafka={"bootstrapServers": "kafka:9092"})
    assert run_json(attempt)["kafka"]["bootstrapServers"] == "kafka:9092"
    assert "kafka-" not in json.dumps([driver_pod(attempt, PLATFORM), template(attempt)])


def test_the_token_stays_in_the_secret():
    attempt = an_attempt()
    assert token_secret(attempt, token="s3cr3t")["stringData"] == {"token": "s3cr3t"}
    assert "s3cr3t" not in json.dumps([config_map(attempt, PLATFORM), driver_pod(attempt, PLATFORM)])


def test_a_drain_has_the_time_it_was_promised():
    pod = driver_pod(an_attempt(drainTimeout="5m"), PLATFORM)
    assert pod["spec"]["terminationGracePeriodSeconds"] > 300


def test_pods_pass_the_restricted_standard(attempt: Any):
    for pod in (driver_pod(attempt, PLATFORM), template(attempt)):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        for one in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            assert one["securityContext"]["allowPrivilegeEscalation"] is False
            assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_users_variables_win():
    attempt = an_attempt(driver={"env": [{"name": "HOME", "value": "/home/me"}]})
    variables = driver_pod(attempt, PLATFORM)["spec"]["containers"][0]["env"]
    assert [one["value"] for one in variables if one["name"] == "HOME"][-1] == "/home/me"


def test_a_pinned_image_goes_before_the_manifests():
    pinned = "acme/clicks@sha256:" + "0" * 64
    attempt = an_attempt(image=pinned)
    assert driver_pod(attempt, PLATFORM)["spec"]["containers"][0]["image"] == pinned
    assert run_json(attempt)["sparkConf"]["spark.kubernetes.container.image"] == pinned


def test_code_from_a_config_map_cannot_replace_the_run_file():
    attempt = an_attempt(
        application={"configMap": {"name": "code", "key": "run.json"}}, code={"run.json": "print('mine')"}
    )
    assert run_json(attempt)["application"]["file"] == "/etc/headrace/code/run.json"
    assert run_json(attempt)["job"]["name"] == "clicks"


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("job.py", "/opt/app/job.py"),
        ("jobs/job.py", "/opt/app/jobs/job.py"),
        ("local:///srv/job.py", "/srv/job.py"),
    ],
)
def test_where_the_application_is_in_the_image(file: str, path: str):
    assert run_json(an_attempt(application={"file": file}))["application"]["file"] == path


@pytest.mark.parametrize(
    ("pod", "heap_mib", "overhead_mib"),
    [
        ({"memory": "4Gi"}, 2458, 1638),
        ({"memory": "4Gi", "memoryOverhead": "1Gi"}, 3072, 1024),
        ({"memory": "768Mi"}, 384, 384),
        ({"memory": "512Mi"}, 256, 256),
    ],
)
def test_heap_and_the_rest_are_the_containers_memory(pod: dict[str, Any], heap_mib: int, overhead_mib: int):
    shares = memory_shares(an_attempt(executors=pod).spec.executors)
    assert (shares.heap_mib, shares.overhead_mib) == (heap_mib, overhead_mib)


def test_the_longest_name_still_fits():
    attempt = an_attempt()
    longest = type(attempt)(**{**vars(attempt), "job": "j" * JOB_NAME_MAX, "run": 99999, "attempt": 99999})
    assert len(longest.name) <= 63
    assert all(len(value) <= 63 for value in longest.labels("executor").values())


def test_workload_identity_needs_no_keys():
    conf = run_json(an_attempt())["sparkConf"]
    assert conf["spark.hadoop.fs.s3a.aws.credentials.provider"].endswith(".DefaultCredentialsProvider")
    assert "spark.hadoop.fs.s3a.endpoint" not in conf


KEYS = {
    "secret": "keys",
    "accessKeyId": "id",
    "secretAccessKey": "key",
    "sessionToken": "token",
}


def test_keys_come_as_files_to_all_that_reach_the_store_and_never_as_variables():
    s3 = {**S3_CODE["checkpoint"]["s3"], "credentials": KEYS}
    checkpoint = {"location": "s3://acme-streams/checkpoints", "s3": s3}
    attempt = an_attempt(**{**S3_CODE, "checkpoint": checkpoint}, check_store=True)
    conf = run_json(attempt)["sparkConf"]
    assert conf["spark.hadoop.fs.s3a.aws.credentials.provider"] == "dev.headrace.FileCredentialsProvider"
    assert conf["spark.hadoop.fs.s3a.classloader.isolation"] == "false"
    assert conf["spark.hadoop.headrace.s3.credentials.file"] == "/etc/headrace/s3-keys"
    reach = {"driver", "executor", "store", "code"}
    for pod in pods(attempt):
        (volume,) = [one for one in pod["volumes"] if one["name"] == "s3-keys"]
        named = {item["path"]: item["key"] for item in volume["secret"]["items"]}
        assert named == {"access_key_id": "id", "secret_access_key": "key", "session_token": "token"}
        assert "optional" not in volume["secret"]
        for one in [*pod.get("initContainers", ()), *pod["containers"]]:
            assert ("s3-keys" in [mount["name"] for mount in one["volumeMounts"]]) == (one["name"] in reach)
            assert not [each for each in one.get("env", ()) if "valueFrom" in each]
            if one["name"] in ("store", "code"):
                assert "--s3-credentials=/etc/headrace/s3-keys" in one["command"]


def scratch_limits(pod: dict[str, Any]) -> dict[str, str]:
    names = ("tmp", "work", "spark-local-dir-1")
    return {one["name"]: one["emptyDir"]["sizeLimit"] for one in pod["volumes"] if one["name"] in names}


def test_what_a_pod_may_write_to_the_disk_of_its_node_is_bounded():
    driver, executor = pods(an_attempt(driver={"scratch": "5Gi"}, executors={"scratch": "50Gi"}))
    assert scratch_limits(driver) == {"tmp": "5Gi", "work": "5Gi"}
    assert scratch_limits(executor) == {"tmp": "50Gi", "work": "50Gi", "spark-local-dir-1": "50Gi"}
    # Where the driver's environment tells Spark that the executors' lies.
    (main,) = driver["containers"]
    place = {each["name"]: each.get("value") for each in main["env"]}["SPARK_LOCAL_DIRS"]
    assert {"name": "spark-local-dir-1", "mountPath": place} in executor["containers"][0]["volumeMounts"]
    assert set(scratch_limits(pods(an_attempt())[1]).values()) == {"10Gi"}


def test_a_local_directory_of_the_users_own_takes_the_place_of_ours():
    claim = {"name": "spark-local-dir-1", "persistentVolumeClaim": {"claimName": "fast"}}
    mount = {"name": "spark-local-dir-1", "mountPath": "/fast"}
    _, executor = pods(an_attempt(executors={"volumes": [claim], "volumeMounts": [mount]}))
    assert [one for one in executor["volumes"] if one["name"] == "spark-local-dir-1"] == [claim]
    mounts = executor["containers"][0]["volumeMounts"]
    (kept,) = [one for one in mounts if one["name"] == "spark-local-dir-1"]
    assert kept["mountPath"] == "/fast"


json_values = st.recursive(
    st.none() | st.booleans() | st.sampled_from("xyz"),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)
json_objects = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@given(json_objects, json_objects)
def test_a_merge_patch_says_the_last_word(base: dict[str, Any], patch: dict[str, Any]):
    result = merged(base, patch)
    assert merged(result, patch) == result
    for key, value in patch.items():
        if value is None:
            assert key not in result
        elif not isinstance(value, dict):
            assert result[key] == value
    assert {key: result[key] for key in base if key not in patch} == {
        key: base[key] for key in base if key not in patch
    }


def pods(attempt: Any) -> list[dict[str, Any]]:
    return [driver_pod(attempt, PLATFORM)["spec"], template(attempt)["spec"]]


def test_every_mount_has_its_volume(attempt: Any):
    for pod in pods(attempt):
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in [*pod.get("initContainers", ()), *pod["containers"]]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_what_lies_in_s3_is_brought_to_where_the_run_file_says_it_is():
    attempt = an_attempt(**S3_CODE)
    spec = driver_pod(attempt, PLATFORM)["spec"]
    (fetch,) = [one for one in spec["initContainers"] if one["name"] == "code"]
    command = fetch["command"]
    flags = [n for n, part in enumerate(command) if part == "--source"]
    brought = {command[n + 1]: f"/opt/headrace-code/{command[n + 2]}" for n in flags}
    told = run_json(attempt)
    assert brought == {
        "spec.application.file": told["application"]["file"],
        "spec.application.pyFiles[1]": told["application"]["pyFiles"][1],
        "spec.application.jars[0]": told["sparkConf"]["spark.jars"],
    }
    assert told["application"]["pyFiles"][0] == "/opt/app/lib.zip"
    assert command[flags[0] + 3] == "s3://acme-jobs/clicks/job.py"


def test_only_code_in_s3_is_fetched(attempt: Any):
    names = [one["name"] for one in driver_pod(attempt, PLATFORM)["spec"]["initContainers"]]
    assert ("code" in names) == (attempt.spec.application.file or "").startswith("s3://")


def test_a_private_authority_reaches_every_jvm_and_every_keeper():
    attempt = an_attempt(**S3_CODE, check_store=True)
    for pod in pods(attempt):
        (main,) = pod["containers"]
        options = {each["name"]: each.get("value", "") for each in main["env"]}["JAVA_TOOL_OPTIONS"]
        assert "-Djavax.net.ssl.trustStore=/opt/headrace-trust/" in options
        assert "trust" in [one["name"] for one in pod["initContainers"]]
    keepers = [one for one in pods(attempt)[0]["initContainers"] if "headrace_jobs.keeper" in one["command"]]
    assert len(keepers) == 3
    for keeper in keepers:
        assert "--s3-ca=/etc/headrace/s3-ca/ca.crt" in keeper["command"]
        assert "s3-ca" in [mount["name"] for mount in keeper["volumeMounts"]]
