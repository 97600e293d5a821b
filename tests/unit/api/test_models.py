"""The models: what a typical manifest becomes, and what every field must declare."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
import yaml
from pydantic import ValidationError

from headrace.api import Change, Condition, Run, StreamJob, StreamJobSpec, StreamJobStatus, StreamSavepoint
from headrace.api.model import ApiModel, leaves
from headrace.api.names import JOB_NAME_MAX, attempt_name, executor_set_name
from tests.manifests_table import DESIGN_SAMPLE, GOOD, a_job


def models_below(model: type[ApiModel]) -> Iterator[type[ApiModel]]:
    yield model
    for info in model.model_fields.values():
        pending: list[Any] = [info.annotation]
        while pending:
            candidate = pending.pop()
            pending += get_args(candidate)
            if isinstance(candidate, type) and issubclass(candidate, ApiModel):
                yield from models_below(candidate)


ALL_MODELS = sorted(
    {*models_below(StreamJob), *models_below(StreamSavepoint)}, key=lambda model: model.__name__
)


def test_the_sample_of_the_design_is_valid():
    job = StreamJob.parse(yaml.safe_load(DESIGN_SAMPLE))
    assert job.metadata.name == "clicks-by-page"
    assert job.spec.application.args == ("--window", "1m")
    assert job.spec.executors.memory.bytes == 4 * 2**30
    assert job.spec.autoscaling is not None
    assert job.spec.autoscaling.lag_objective.seconds == 30
    assert job.spec.drain_timeout.seconds == 120
    assert job.spec.watchdog.batch_timeout.seconds == 1800


@pytest.mark.parametrize("name", GOOD)
def test_a_good_manifest_parses_and_comes_back_the_same(name: str):
    model = StreamJob if GOOD[name]["kind"] == "StreamJob" else StreamSavepoint
    parsed = model.parse(GOOD[name])
    assert model.parse(parsed.to_manifest()) == parsed


@pytest.mark.parametrize("leaf", list(leaves(StreamJobSpec)), ids=lambda leaf: ".".join(leaf.path))
def test_every_field_of_the_spec_has_a_change_class(leaf):
    assert leaf.facts.change in Change


def test_some_change_classes_that_the_design_names():
    classes = {".".join(leaf.path): leaf.facts.change for leaf in leaves(StreamJobSpec)}
    for path in ("executors.count", "autoscaling.max", "savepoints.keep", "suspend"):
        assert classes[path] is Change.LIVE
    for path in ("image", "application.args", "sparkConf", "executors.memory", "state.partitions"):
        assert classes[path] is Change.RESTART
    for path in ("checkpoint.s3.endpoint", "checkpoint.location"):
        assert classes[path] is Change.STATE


@pytest.mark.parametrize("model", ALL_MODELS, ids=lambda model: model.__name__)
def test_every_model_and_field_says_what_it_is(model: type[ApiModel]):
    assert model.__doc__
    for name, info in model.model_fields.items():
        assert info.description, f"{model.__name__}.{name} has no description"
        assert info.description[-1] in ".…)", f"{model.__name__}.{name}: a description is a sentence"


def test_every_field_of_the_spec_is_used_by_a_good_manifest():
    used = {path for manifest in GOOD.values() for path in _paths(manifest["spec"])}
    unused = [leaf.path for leaf in leaves(StreamJobSpec) if leaf.path not in used]
    assert unused == []


def _paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))


def test_models_are_frozen():
    job = StreamJob.parse(a_job())
    with pytest.raises(ValidationError):
        job.spec.suspend = True  # pyright: ignore[reportAttributeAccessIssue]


def test_a_manifest_speaks_camel_case_only():
    with pytest.raises(ValidationError):
        StreamJob.parse(a_job(drain_timeout="30s"))
    assert StreamJobSpec.model_validate({"application": {"file": "job.py"}, "drain_timeout": "30s"})


def test_nothing_is_converted_in_silence():
    for wrong in ({"executors": {"count": "2"}}, {"suspend": 1}, {"restartNonce": 1}, {"drainTimeout": 5}):
        with pytest.raises(ValidationError):
            StreamJob.parse(a_job(**wrong))


def test_a_null_is_no_value():
    assert StreamJob.parse(a_job(executors=None)) == StreamJob.parse(a_job())


def test_to_manifest_keeps_empty_objects_of_kubernetes_and_drops_its_own():
    job = StreamJob.parse(a_job(driver={"volumes": [{"name": "tmp", "emptyDir": {}}]}))
    driver = job.to_manifest()["spec"]["driver"]
    assert driver["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert "env" not in driver


# ---- status


def test_a_status_survives_the_way_through_json():
    status = StreamJobStatus(
        observed_generation=3,
        run=Run(number=2, revision="abc", started_at=datetime(2026, 1, 31, 8, 0, 0, 250, tzinfo=UTC)),
        conditions=(
            Condition(
                type="Ready",
                status="True",
                reason="Running",
                last_transition_time=datetime(2026, 1, 31, 8, 0, tzinfo=UTC),
            ),
        ),
    )
    manifest = status.to_manifest()
    assert manifest["conditions"][0]["lastTransitionTime"] == "2026-01-31T08:00:00Z"
    assert StreamJobStatus.parse(manifest) == status
    condition = status.condition("Ready")
    assert condition is not None
    assert condition.reason == "Running"


def test_a_status_of_a_newer_headrace_can_be_read():
    assert StreamJobStatus.parse({"epoch": 4, "somethingNew": {"a": 1}}).epoch == 4


def test_an_empty_status_has_defaults():
    assert StreamJobStatus.parse({}) == StreamJobStatus()


# ---- names


def test_every_name_made_from_the_longest_job_name_fits():
    longest = "j" * JOB_NAME_MAX
    assert len(executor_set_name(longest, 9_999_999)) == 52
    assert len(attempt_name(longest, 99_999, 9_999_999)) <= 63
    with pytest.raises(ValidationError, match="34"):
        StreamJob.parse({**a_job(), "metadata": {"name": longest + "j"}})
