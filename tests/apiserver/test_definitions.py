"""The CRDs themselves: accepted by a real server, served, scaled, shown and explained."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.api import Condition, Run, StreamJob, StreamJobStatus
from tests.cluster.api import Api
from tests.manifest_cases.defaults import plain

JOBS = "/apis/headrace.dev/v1alpha1/namespaces/{}/streamjobs"
SAVEPOINTS = "/apis/headrace.dev/v1alpha1/namespaces/{}/streamsavepoints"

KUBERNETES_OWN_FIELDS = tuple(
    f"{plural}.{field}"
    for plural in ("streamjobs", "streamsavepoints")
    for field in ("apiVersion", "kind", "metadata")
)

# The sample of the design page: the whole of a typical job.
SAMPLE: dict[str, Any] = {
    "apiVersion": "headrace.dev/v1alpha1",
    "kind": "StreamJob",
    "metadata": {"name": "clicks-by-page"},
    "spec": {
        "application": {"file": "s3://acme-jobs/clicks.py", "args": ["--window", "1m"]},
        "image": "acme/clicks:1.4.2",
        "checkpoint": {"location": "s3://acme-streams/checkpoints"},
        "executors": {"count": 2, "cores": 2, "memory": "4Gi"},
        "autoscaling": {"max": 12, "lagObjective": "30s"},
        "savepoints": {"schedule": "0 * * * *", "keep": 24},
        "upgrade": {"strategy": "Rehearsed"},
    },
}


def a_job(name: str = "clicks", **spec: Any) -> dict[str, Any]:
    return {**SAMPLE, "metadata": {"name": name}, "spec": {**SAMPLE["spec"], **spec}}


def test_the_server_finds_nothing_wrong_with_the_definitions(crds: dict[str, dict[str, Any]]):
    assert set(crds) == {"streamjobs", "streamsavepoints"}
    for definition in crds.values():
        conditions = {one["type"]: one for one in definition["status"]["conditions"]}
        assert conditions["NamesAccepted"]["status"] == "True"
        assert conditions["Established"]["status"] == "True"
        assert conditions.get("NonStructuralSchema", {"status": "False"})["status"] == "False", conditions


def test_short_names_and_the_category_find_the_kinds(kubectl: Callable[..., str]):
    lines = kubectl("api-resources", "--api-group=headrace.dev", "--no-headers").splitlines()
    assert {tuple(line.split()[:2]) for line in lines} == {("streamjobs", "sj"), ("streamsavepoints", "ssp")}
    assert "streamjobs" in kubectl("api-resources", "--categories=headrace", "--no-headers")


def test_what_is_stored_has_the_defaults_too(api: Api, namespace: str):
    """test_manifests_table.py looks at them all, in dry runs."""
    stored = api.create(JOBS.format(namespace), SAMPLE).need()
    ours = StreamJob.parse(SAMPLE).spec
    assert StreamJob.parse(stored).spec == ours
    assert plain(stored["spec"]) == plain(ours.to_manifest())


def test_kubectl_scale_writes_the_executor_count(api: Api, namespace: str, kubectl: Callable[..., str]):
    api.create(JOBS.format(namespace), a_job(autoscaling={"mode": "Off", "max": 12})).need()
    kubectl("scale", "streamjob/clicks", "--replicas=5", "-n", namespace)
    job = api.get(f"{JOBS.format(namespace)}/clicks").need()
    assert job["spec"]["executors"]["count"] == 5
    assert job["metadata"]["generation"] == 2


def test_the_scale_subresource_shows_what_runs_and_how_to_find_it(api: Api, namespace: str):
    path = f"{JOBS.format(namespace)}/clicks"
    api.create(JOBS.format(namespace), a_job()).need()
    status = {"status": {"executors": {"replicas": 3, "selector": "headrace.dev/job=clicks"}}}
    api.patch(f"{path}/status", status).need()
    scale = api.get(f"{path}/scale").need()
    assert scale["spec"]["replicas"] == 2
    assert scale["status"] == {"replicas": 3, "selector": "headrace.dev/job=clicks"}


def test_scaling_to_nothing_is_refused_because_suspend_is_meant(api: Api, namespace: str):
    path = f"{JOBS.format(namespace)}/clicks"
    api.create(JOBS.format(namespace), a_job()).need()
    refused = api.patch(f"{path}/scale", {"spec": {"replicas": 0}})
    assert refused.status == 422
    assert "spec.executors.count" in refused.message


def test_status_and_spec_are_written_apart(api: Api, namespace: str):
    path = f"{JOBS.format(namespace)}/clicks"
    api.create(JOBS.format(namespace), {**a_job(), "status": {"state": "Running"}}).need()
    assert "status" not in api.get(path).need()
    both = {"spec": {"suspend": True}, "status": {"state": "Running"}}
    assert "status" not in api.patch(path, both).need()
    after = api.patch(f"{path}/status", {"spec": {"suspend": False}, "status": {"state": "Suspended"}}).need()
    assert after["status"]["state"] == "Suspended"
    assert after["spec"]["suspend"] is True


def test_a_stale_status_write_is_refused(api: Api, namespace: str):
    """The precondition that stops a paused old leader."""
    path = f"{JOBS.format(namespace)}/clicks"
    old = api.create(JOBS.format(namespace), a_job()).need()["metadata"]["resourceVersion"]
    api.patch(f"{path}/status", {"status": {"state": "Running"}}).need()
    late = {"metadata": {"resourceVersion": old}, "status": {"state": "Suspended"}}
    assert api.patch(f"{path}/status", late).status == 409


def test_the_columns_that_kubectl_get_shows(api: Api, namespace: str, kubectl: Callable[..., str]):
    api.create(JOBS.format(namespace), a_job()).need()
    now = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True", "reason": "Running", "message": "", "lastTransitionTime": now}
    status = {
        "state": "Running",
        "conditions": [{**ready, "observedGeneration": 1}],
        "executors": {"replicas": 2, "selector": "headrace.dev/job=clicks"},
    }
    api.patch(f"{JOBS.format(namespace)}/clicks/status", {"status": status}).need()
    header, row = kubectl("get", "sj", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "STATE", "READY", "EXECUTORS", "LAG", "RUN", "AGE"]
    assert row.split()[:4] == ["clicks", "Running", "True", "2"]


@pytest.mark.parametrize(
    "path", ["executors.count", "checkpoint.location", "upgrade.strategy", "autoscaling.max"]
)
def test_kubectl_explain_tells_what_the_models_say(
    path: str, kubectl: Callable[..., str], crds: dict[str, Any]
):
    explained = " ".join(kubectl("explain", f"streamjob.spec.{path}").split())
    described = " ".join(_schema_at(crds["streamjobs"], f"spec.{path}")["description"].split())
    assert described in explained


def test_every_field_is_explained(crds: dict[str, Any]):
    silent = [
        path
        for plural, definition in crds.items()
        for path, schema in _every_field(_root_schema(definition), plural)
        if not schema.get("description") and not path.startswith(KUBERNETES_OWN_FIELDS)
    ]
    assert silent == []


def test_kubectl_wait_believes_ready_only_for_the_generation_that_it_speaks_of(
    api: Api, namespace: str, kubectl: Callable[..., str]
):
    """kstatus: tools wait for Ready."""
    path = f"{JOBS.format(namespace)}/clicks"
    wait = ("wait", "sj/clicks", "-n", namespace, "--for=condition=Ready")
    generation = api.create(JOBS.format(namespace), a_job()).need()["metadata"]["generation"]
    api.patch(f"{path}/status", {"status": _ready_at(generation)}).need()
    assert "condition met" in kubectl(*wait, "--timeout=10s")

    edited = api.patch(path, {"spec": {"executors": {"count": 3}}}).need()["metadata"]["generation"]
    assert edited == generation + 1
    with pytest.raises(AssertionError, match="timed out"):
        kubectl(*wait, "--timeout=2s")
    api.patch(f"{path}/status", {"status": _ready_at(edited)}).need()
    assert "condition met" in kubectl(*wait, "--timeout=10s")


def _ready_at(generation: int) -> dict[str, Any]:
    conditions = tuple(
        Condition(
            type=kind,
            status="True" if kind == "Ready" else "False",
            reason="Running",
            message="All queries commit.",
            observed_generation=generation,
            last_transition_time=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for kind in ("Ready", "Reconciling", "Stalled")
    )
    return StreamJobStatus(observed_generation=generation, conditions=conditions).to_manifest()


def test_an_unknown_field_is_refused_by_name(api: Api, namespace: str):
    refused = api.create(JOBS.format(namespace), a_job(executor={"count": 3}))
    assert refused.status == 400
    assert 'unknown field "spec.executor"' in refused.message


def test_what_a_savepoint_is_cannot_change_but_what_becomes_of_it_can(api: Api, namespace: str):
    savepoint = {
        "apiVersion": "headrace.dev/v1alpha1",
        "kind": "StreamSavepoint",
        "metadata": {"name": "before-the-holidays"},
        "spec": {"job": {"name": "clicks"}},
    }
    path = f"{SAVEPOINTS.format(namespace)}/before-the-holidays"
    assert api.create(SAVEPOINTS.format(namespace), savepoint).need()["spec"]["cause"] == "Manual"
    assert api.patch(path, {"spec": {"pinned": True}}).ok
    refused = api.patch(path, {"spec": {"job": {"name": "orders"}}})
    assert refused.status == 422
    assert "make a new one" in refused.message


def test_the_checkpoint_location_is_free_until_the_job_has_a_run(api: Api, namespace: str):
    path = f"{JOBS.format(namespace)}/clicks"
    api.create(JOBS.format(namespace), a_job()).need()
    elsewhere = {"spec": {"checkpoint": {"location": "s3://acme-streams/elsewhere"}}}
    assert api.patch(path, elsewhere).ok
    status = StreamJobStatus(run=Run(number=1, revision="4f2a")).to_manifest()
    api.patch(f"{path}/status", {"status": status}).need()
    refused = api.patch(path, {"spec": {"checkpoint": {"location": "s3://acme-streams/third"}}})
    assert refused.status == 422
    assert "checkpoint.location cannot change once the job has a run" in refused.message


def _root_schema(definition: dict[str, Any]) -> dict[str, Any]:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _schema_at(definition: dict[str, Any], path: str) -> dict[str, Any]:
    schema = _root_schema(definition)
    for part in path.split("."):
        schema = schema["properties"][part]
    return schema


def _every_field(schema: dict[str, Any], path: str):
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}", below
        yield from _every_field(below, f"{path}.{name}")
    if isinstance(items := schema.get("items"), dict):
        yield from _every_field(items, f"{path}[]")
