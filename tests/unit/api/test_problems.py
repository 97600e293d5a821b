"""Bad manifests: the message names the field and the value, and the fix, once applied, validates."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.api.edits import Path, apply_edits, value_at
from headrace.api.problems import Problem, minimal_manifest, parse_or_explain
from tests.manifests_table import BAD, GOOD, Bad, a_job

# Each round mends one fault; three mutations bring a handful, and a fix may uncover what lay below.
_MOST_ROUNDS = 30


def problems_of(manifest: Any) -> list[Problem]:
    found = parse_or_explain(manifest)
    return found if isinstance(found, list) else []


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_a_bad_manifest_has_one_problem_and_its_fix_validates(case: Bad):
    problems = problems_of(case.manifest)
    assert [each.field for each in problems] == [case.field]
    assert case.says in problems[0].message
    assert problems[0].fix.sentence
    fixed = apply_edits(case.manifest, problems[0].fix.edits)
    assert problems_of(fixed) == []
    if case.becomes is not None:
        path, value = case.becomes
        assert value_at(fixed, path) == value


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_a_fix_leaves_the_rest_alone(case: Bad):
    before = copy.deepcopy(case.manifest)
    problems_of(case.manifest)
    assert case.manifest == before


@pytest.mark.parametrize("name", GOOD)
def test_a_good_manifest_has_no_problem(name: str):
    assert problems_of(GOOD[name]) == []


def test_several_problems_are_all_told():
    problems = problems_of(a_job(exectors={}, drainTimeout=5, executors={"count": "two", "memory": "4GB"}))
    assert {each.field for each in problems} == {
        "spec.exectors",
        "spec.drainTimeout",
        "spec.executors.count",
        "spec.executors.memory",
    }


def test_an_example_is_valid():
    assert problems_of(minimal_manifest()) == []


# ---- secrets


@pytest.mark.parametrize(
    "manifest",
    [
        a_job(driver={"env": [{"name": "DB_PASSWORD", "value": 918273}]}),
        a_job(driver={"env": {"API_TOKEN": 918273}}),
        a_job(kafka={"protocol": "SASL_SSL", "sasl": {"secret": "kafka", "password": "918273!"}}),
        a_job(checkpoint={"s3": {"secretAccessKey": "918273"}}),
        a_job(checkpoint={"s3": {"credentials": {"secret": "918273 "}}}),
        a_job(sparkConf={"spark.hadoop.fs.s3a.bucket.x.secret.key": 918273}),
        a_job(application={"file": "job.py", "args": ["--password", 918273]}),
        a_job(application={"file": "job.py", "args": {"--password": 918273}}),
        a_job(application={"file": "https://me:918273@example.com/job.py"}),
        a_job(password="918273"),
    ],
    ids=lambda manifest: str(list(manifest["spec"].items())[-1])[:40],
)
def test_a_secret_is_never_shown(manifest: Any):
    problems = problems_of(manifest)
    assert problems
    shown = repr(problems)
    assert "918273" not in shown
    assert "***" in shown or "no such field" in shown


# ---- fixes of anything


def _places(value: Any, path: Path = ()) -> list[Path]:
    """All places in a manifest, without those of the frame that would make it another kind."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _places(inner, (*path, index))
    return found


def _mutated(manifest: Any, path: Path, junk: Any, how: str) -> Any:
    *above, last = path
    holder = manifest
    for part in above:
        holder = holder[part]
    match how:
        case "replace":
            holder[last] = junk
        case "remove":
            del holder[last]
        case "misspell" if isinstance(holder, dict):
            holder[f"{last}s"] = holder.pop(last)
        case _ if isinstance(holder, dict):
            holder["unheardOf"] = junk
        case _:
            holder.append(junk)
    return manifest


_JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=12),
        st.sampled_from(["4GB", "7d", "two", "@daily", "s3a://x/y", "-1", "0", "auto", "a" * 400]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=4,
)


# The same examples every time: what is found here should not depend on the day.
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_fixes_mend_whatever_was_done_to_a_good_manifest(data: st.DataObject):
    name = data.draw(st.sampled_from(sorted(GOOD)))
    manifest: Any = copy.deepcopy(GOOD[name])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_places(manifest)))
        how = data.draw(st.sampled_from(["replace", "remove", "misspell", "add"]))
        manifest = _mutated(manifest, path, data.draw(_JUNK), how)
    rounds = 0
    while (problems := problems_of(manifest)) and rounds < _MOST_ROUNDS:
        assert problems[0].fix.sentence
        manifest = apply_edits(manifest, problems[0].fix.edits)
        rounds += 1
    assert problems == []
