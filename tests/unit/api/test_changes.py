"""The plan of an edit: which fields, which class, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.api import Change, StreamJob, StreamJobSpec
from headrace.core.changes import ChangePlan, classify, fields_that_need_a_run
from tests.manifests_table import GOOD, a_job


def a_spec(**spec: Any) -> StreamJobSpec:
    return StreamJob.parse(a_job(**spec)).spec


def plan(before: dict[str, Any], after: dict[str, Any]) -> ChangePlan:
    return classify(a_spec(**before), a_spec(**after))


Spec = dict[str, Any]

ELSEWHERE: Spec = {"checkpoint": {"s3": {"endpoint": "https://s3.example.com"}}}

EDITS: list[tuple[str, Spec, Spec, dict[str, Change]]] = [
    ("nothing", {}, {}, {}),
    ("a default written out", {}, {"executors": {"count": 1}, "drainTimeout": "2m"}, {}),
    ("an empty list written out", {}, {"imagePullSecrets": [], "sparkConf": {}}, {}),
    ("count", {}, {"executors": {"count": 3}}, {"spec.executors.count": Change.LIVE}),
    ("image", {"image": "job:1"}, {"image": "job:2"}, {"spec.image": Change.RESTART}),
    ("partitions", {}, {"state": {"partitions": 8}}, {"spec.state.partitions": Change.RESTART}),
    ("store", {}, ELSEWHERE, {"spec.checkpoint.s3.endpoint": Change.STATE}),
    ("suspend", {}, {"suspend": True}, {"spec.suspend": Change.LIVE}),
    (
        "one setting of many",
        {"sparkConf": {"spark.a": "1", "spark.b": "2", "spark.c": "3"}},
        {"sparkConf": {"spark.a": "1", "spark.b": "9", "spark.d": "4"}},
        {
            'spec.sparkConf["spark.b"]': Change.RESTART,
            'spec.sparkConf["spark.c"]': Change.RESTART,
            'spec.sparkConf["spark.d"]': Change.RESTART,
        },
    ),
    (
        "one variable of many",
        {"driver": {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}},
        {"driver": {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "9"}]}},
        {"spec.driver.env.A": Change.RESTART},
    ),
    (
        "a section that appears",
        {},
        {"objectives": {"latency": "5s"}},
        {"spec.objectives.latency": Change.LIVE},
    ),
    (
        "a raw object is one value",
        {"driver": {"affinity": {"a": {"b": 1, "c": 2}}}},
        {"driver": {"affinity": {"a": {"b": 1, "c": 3}}}},
        {"spec.driver.affinity": Change.RESTART},
    ),
    ("where to start", {"startFrom": {"latest": True}}, {}, {"spec.startFrom.latest": Change.LIVE}),
]


@pytest.mark.parametrize(("name", "before", "after", "expected"), EDITS, ids=[edit[0] for edit in EDITS])
def test_an_edit_is_classified(name: str, before: Spec, after: Spec, expected: dict[str, Change]):
    made = plan(before, after)
    assert {each.path: each.change for each in made.changed} == expected
    highest = max(expected.values(), key=lambda change: change.rank, default=None)
    assert made.change_class is highest
    assert made.needs_run == (highest in (Change.RESTART, Change.STATE))


def test_the_highest_class_rules_and_its_fields_are_told():
    made = plan({}, {**ELSEWHERE, "image": "job:2", "suspend": True})
    assert made.change_class is Change.STATE
    assert made.sentence() == 'spec.checkpoint.s3.endpoint is now "https://s3.example.com"'
    assert [each.path for each in made.of_class(Change.LIVE)] == ["spec.suspend"]


def test_a_sentence_stays_short():
    conf = {f"spark.a{number}": "1" for number in range(9)}
    assert plan({}, {"sparkConf": conf}).sentence().endswith(" and 6 more")


def test_what_comes_and_what_goes_reads_well():
    assert plan({}, {"image": "job:2"}).sentence() == 'spec.image is now "job:2"'
    assert plan({"image": "job:2"}, {}).sentence() == 'spec.image is no longer "job:2"'


def test_a_secret_is_not_told():
    before = {"driver": {"env": [{"name": "DB_PASSWORD", "value": "918273"}]}}
    after = {"driver": {"env": [{"name": "DB_PASSWORD", "value": "918274"}]}, "image": "job:2"}
    made = plan(before, after)
    assert "91827" not in repr(made)
    assert "91827" not in made.sentence()
    assert "***" in made.sentence()


@pytest.mark.parametrize("name", [name for name in GOOD if GOOD[name]["kind"] == "StreamJob"])
def test_what_needs_a_run_differs_exactly_when_the_plan_says_so(name: str):
    old, new = a_spec(), StreamJob.parse(GOOD[name]).spec
    differs = fields_that_need_a_run(old) != fields_that_need_a_run(new)
    assert differs == classify(old, new).needs_run == classify(new, old).needs_run
