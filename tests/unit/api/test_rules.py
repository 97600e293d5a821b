"""Cross-field rules: each is said twice, in Python and in CEL, and each is broken by a case of the table."""

from __future__ import annotations

import pytest

from headrace.api import StreamJob, StreamSavepoint
from headrace.api.edits import apply_edits, below, path_text
from headrace.api.model import rules_of
from headrace.api.problems import parse_or_explain
from headrace.api.sparkconf import OWNED, owner_of
from headrace_jobs.harness.conf import PINNED_SESSION_CONF
from tests.manifests_table import BAD, BAD_EDITS, GOOD_EDITS, BadEdit, Manifest, a_job
from tests.unit.api.test_models import ALL_MODELS


def _declared_rules() -> set[str]:
    return {
        check.__qualname__
        for model in ALL_MODELS
        for name in rules_of(model)
        if (check := getattr(model, name))
    }


def test_every_rule_is_broken_by_a_case_of_the_table():
    covered = {case.rule for case in (*BAD, *BAD_EDITS) if case.rule}
    assert covered == _declared_rules()


def test_every_rule_says_something_in_both_languages():
    for model in ALL_MODELS:
        for name, declared in rules_of(model).items():
            assert declared.cel
            assert declared.message
            assert "\n" not in declared.message
            assert declared.transition == ("oldSelf" in declared.cel), f"{model.__name__}.{name}"


def _parsed(manifest: Manifest, status: Manifest) -> StreamJob | StreamSavepoint:
    model = StreamJob if manifest["kind"] == "StreamJob" else StreamSavepoint
    return model.parse({**manifest, "status": status} if status else manifest)


def _broken(old: Manifest, new: Manifest, status: Manifest) -> dict[str, tuple]:
    """What an edit breaks, by field, with the edits that mend it."""
    before, after = _parsed(old, status), _parsed(new, status)
    found = [(each, ()) for each in after.broken_by_edit_of(before)]
    found += [(each, ("spec",)) for each in after.spec.broken_by_edit_of(before.spec)]
    return {path_text(prefix + each.at): below(prefix, each.edits) for each, prefix in found}


@pytest.mark.parametrize("case", BAD_EDITS, ids=lambda case: case.name)
def test_a_bad_edit_is_refused_and_its_fix_is_not(case: BadEdit):
    broken = _broken(case.old, case.new, case.old_status)
    assert list(broken) == [case.field]
    fixed = apply_edits(case.new, broken[case.field])
    assert _broken(case.old, fixed, case.old_status) == {}


@pytest.mark.parametrize("name", GOOD_EDITS)
def test_a_good_edit_passes(name: str):
    assert _broken(*GOOD_EDITS[name]) == {}


# ---- settings that Headrace owns


@pytest.mark.parametrize("owned", OWNED, ids=lambda owned: owned.keys[0])
def test_every_owned_setting_is_refused_with_its_reason(owned):
    for key in [pattern.replace("*", "x") for pattern in owned.keys]:
        problems = parse_or_explain(a_job(sparkConf={key: "1"}))
        assert isinstance(problems, list)
        assert owned.reason in problems[0].message
        assert (owned.instead or "remove it") in problems[0].fix.sentence
        assert isinstance(
            parse_or_explain(apply_edits(a_job(sparkConf={key: "1"}), problems[0].fix.edits)), StreamJob
        )


def test_what_the_harness_pins_is_owned():
    for key in PINNED_SESSION_CONF:
        assert owner_of(key) is not None


def test_other_settings_have_no_owner():
    for key in (
        "spark.sql.session.timeZone",
        "spark.ui.port",
        "spark.sql.streaming.stateStore.encodingFormat",
    ):
        assert owner_of(key) is None


def test_several_owned_settings_are_several_problems():
    problems = parse_or_explain(a_job(sparkConf={"spark.master": "x", "spark.app.id": "y", "spark.ok": "z"}))
    assert isinstance(problems, list)
    assert [each.path[-1] for each in problems] == ["spark.master", "spark.app.id"]
