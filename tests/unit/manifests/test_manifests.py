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
from tests.unit.manifests.samples import FULL, PLATFORM, an_attempt

EVERY_SPEC = {"typical": {}, "full": FULL, "module": {"application": {"module": "acme.clicks"}}}


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
    variables = {
        variable["name"]: variable
        for variable in driver_pod(attempt, PLATFORM)["spec"]["containers"][0]["env"]
    }
    assert "value" not in variables["AWS_SECRET_ACCESS_KEY"]


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
    assert "WebIdentityToken" in conf["spark.hadoop.fs.s3a.aws.credentials.provider"]
    assert "spark.hadoop.fs.s3a.endpoint" not in conf


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
