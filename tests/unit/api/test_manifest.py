"""Manifest files: places, texts that are not YAML, what a person sees."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.api.edits import apply_edits, value_at
from headrace.api.problems import parse_or_explain
from headrace.cli.manifest import (
    BadManifest,
    LoadedManifest,
    check_file,
    load,
    load_streamjob,
    loads,
    render_all,
)
from headrace.cli.render import PlacedProblem
from headrace.cli.yamlfixes import TextFix, apply_text_edits
from headrace.cli.yamltext import scan
from tests.manifests_table import BAD, BAD_TEXTS, GOOD_TEXT, Bad, BadText

_MOST_ROUNDS = 5
_MOST_ROUNDS_OF_ANY_TEXT = 30


def fixed(text: str, problem: PlacedProblem) -> str:
    """The text after a fix."""
    if isinstance(problem.fix, TextFix):
        return apply_text_edits(text, problem.fix.edits)
    documents = [document.data for document in scan(text)[0] if document.data is not None]
    documents[problem.document] = apply_edits(documents[problem.document], problem.fix.edits)
    return yaml.safe_dump_all(documents, sort_keys=False)


def bad(text: str, *, one_job: bool = True) -> BadManifest:
    loaded = loads(text, name="job.yaml", one_job=one_job)
    assert isinstance(loaded, BadManifest)
    return loaded


# ---- texts


@pytest.mark.parametrize("case", BAD_TEXTS, ids=lambda case: case.name)
def test_a_bad_text_has_a_problem_with_its_line_and_a_fix(case: BadText):
    problem = bad(case.text).problems[0]
    assert problem.line == case.line
    assert case.says in problem.message
    text, rounds = case.text, 0
    while isinstance(loaded := loads(text, one_job=True), BadManifest) and rounds < _MOST_ROUNDS:
        text = fixed(text, loaded.problems[0])
        rounds += 1
    assert isinstance(loaded, LoadedManifest)


def test_a_good_text():
    loaded = loads(GOOD_TEXT, one_job=True)
    assert isinstance(loaded, LoadedManifest)
    assert [job.metadata.name for job in loaded.jobs] == ["orders"]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_a_bad_manifest_written_as_yaml_is_shown_at_its_field(case: Bad):
    text = yaml.safe_dump(case.manifest, sort_keys=False)
    problem = bad(text, one_job=False).problems[0]
    assert problem.field == case.field
    explained = parse_or_explain(case.manifest)
    assert isinstance(explained, list)
    # What is not there is shown at what it belongs to.
    path = explained[0].path
    while path and value_at(case.manifest, path) is None:
        path = path[:-1]
    names = [part for part in path if isinstance(part, str)]
    assert (names[-1] if names else "") in text.splitlines()[problem.line - 1] or isinstance(path[-1], int)


# ---- places


def test_the_value_is_pointed_at():
    problem = bad(GOOD_TEXT.replace("count: 2", "count: two")).problems[0]
    assert (problem.line, problem.column, problem.length) == (10, 12, 3)


def test_an_unknown_field_is_pointed_at_by_its_name():
    problem = bad(GOOD_TEXT.replace("executors:", "exectors:")).problems[0]
    assert (problem.line, problem.column, problem.length) == (9, 3, 8)


def test_what_is_missing_is_shown_where_it_belongs():
    problem = bad(GOOD_TEXT + "  autoscaling:\n    min: 1\n").problems[0]
    assert problem.field == "spec.autoscaling.max"
    assert problem.line == 12


def test_a_time_zone_that_does_not_exist_is_shown_with_the_one_that_was_meant():
    text = """\
apiVersion: headrace.dev/v1alpha1
kind: StreamJob
metadata: {name: nightly}
spec:
  application: {file: job.py}
  trigger: {mode: AvailableNow, schedule: "30 1 * * *", timeZone: Europe/berlin}
"""
    loaded = loads(text)
    assert isinstance(loaded, BadManifest)
    (problem,) = loaded.problems
    assert (problem.field, problem.line) == ("spec.trigger.timeZone", 6)
    assert problem.message.endswith("did you mean Europe/Berlin?")
    assert problem.fix.sentence == "set timeZone: Europe/Berlin"
    assert isinstance(loads(text.replace("berlin", "Berlin")), LoadedManifest)


def test_problems_come_in_the_order_of_their_lines():
    text = (
        GOOD_TEXT.replace("4Gi", "4GB")
        .replace("count: 2", "count: two")
        .replace("name: orders", "name: Orders")
    )
    assert [each.line for each in bad(text).problems] == [10, 11]


def test_places_after_a_document_of_another_kind_and_through_an_alias():
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n---\n{GOOD_TEXT.replace('4Gi', '4GB')}"
    assert bad(text).problems[0].line == 15
    aliased = GOOD_TEXT.replace("memory: 4Gi", "memory: &m 4GB") + "  driver:\n    memory: *m\n"
    assert [each.field for each in bad(aliased).problems] == ["spec.executors.memory", "spec.driver.memory"]


def test_a_merge_key_is_understood():
    text = (
        GOOD_TEXT.replace("  executors:\n", "  executors: &pod\n")
        + "  driver:\n    <<: *pod\n    memory: 2Gi\n"
    )
    problems = bad(text).problems  # `count` came along
    assert [each.field for each in problems] == ["spec.driver.count"]


def test_dates_and_clock_times_stay_texts():
    loaded = loads(GOOD_TEXT.replace("[--window, 1m]", "[2026-01-31, 12:30:45]"))
    assert isinstance(loaded, LoadedManifest)
    assert loaded.jobs[0].spec.application.args == ("2026-01-31", "12:30:45")


# ---- files


def test_other_documents_are_kept():
    loaded = loads(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n---\n{GOOD_TEXT}", one_job=True)
    assert isinstance(loaded, LoadedManifest)
    assert [other["kind"] for other in loaded.others] == ["ConfigMap"]


def test_several_jobs_are_fine_unless_one_is_asked_for():
    loaded = loads(f"{GOOD_TEXT}---\n{GOOD_TEXT.replace('orders', 'clicks')}")
    assert isinstance(loaded, LoadedManifest)
    assert [job.metadata.name for job in loaded.jobs] == ["orders", "clicks"]


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path):
    missing = load(tmp_path / "job.yaml")
    assert isinstance(missing, BadManifest)
    assert "No such file" in missing.problems[0].message
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfe\x00")
    binary = load_streamjob(tmp_path / "job.yaml")
    assert isinstance(binary, str)
    assert "UTF-8" in binary


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD_TEXT.replace("\n", "\r\n").encode())
    assert not isinstance(load_streamjob(path), str)


def test_check_file_says_what_is_in_it(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text(GOOD_TEXT)
    assert check_file(path).good
    assert check_file(path).text == f"{path}: StreamJob orders: valid"
    path.write_text(GOOD_TEXT.replace("4Gi", "4GB"))
    assert not check_file(path).good
    assert f"{path}:11:" in check_file(path).text


# ---- what a person sees


def test_a_problem_reads_like_one_of_a_good_compiler():
    assert render_all(bad(GOOD_TEXT.replace("count: 2", "count: two"))) == (
        'job.yaml:10: spec.executors.count: "two" is not a whole number\n'
        "  10 |     count: two\n"
        "     |            ^^^\n"
        "  fix: write 2"
    )


def test_several_problems_one_below_the_other():
    text = GOOD_TEXT.replace("executors:", "exectors:").replace(
        "file: job.py", "file: job.py\n    module: acme.job"
    )
    assert render_all(bad(text)) == (
        "job.yaml:8: spec.application.module: what to run: file and module exclude each other\n"
        "  8 |     module: acme.job\n"
        "    |             ^^^^^^^^\n"
        "  fix: keep file and remove module, or the other way round\n"
        "\n"
        "job.yaml:10: spec.exectors: there is no such field\n"
        "  10 |   exectors:\n"
        "     |   ^^^^^^^^\n"
        "  fix: rename it to executors"
    )


def test_colour_only_when_asked_for():
    problem = bad(GOOD_TEXT.replace("count: 2", "count: two"))
    assert "\033[" not in render_all(problem)
    assert "\033[31m^^^" in render_all(problem, color=True)


def test_a_long_line_is_cut():
    text = GOOD_TEXT.replace("file: job.py", f"file: {'x' * 3000}")
    assert max(len(line) for line in render_all(bad(text)).splitlines()[1:3]) < 140


SECRET = "918273"


@pytest.mark.parametrize(
    "text",
    [
        GOOD_TEXT + f"  driver: {{env: [{{name: DB_PASSWORD, value: {SECRET}}}]}}\n",
        GOOD_TEXT + f"  driver: {{env: [{{name: DB_PASSWORD, value: '{SECRET}'}}], memory: 4GB}}\n",
        GOOD_TEXT + f"  driver:\n    env:\n      - name: DB_PASSWORD\n        value: [{SECRET}\n",
        GOOD_TEXT + f"  driver:\n    env:\n      - {{name: API_TOKEN, value: {SECRET}\n",
        GOOD_TEXT + f"  password: {SECRET}\n",
        GOOD_TEXT + f"  password: |\n    {SECRET}\n\tx\n",
        GOOD_TEXT.replace("[--window, 1m]", f"[--password, {SECRET}]"),
        GOOD_TEXT.replace("file: job.py", f"file: https://me:{SECRET}@example.com/job.py"),
    ],
)
def test_a_secret_is_never_shown_not_even_in_the_line(text: str):
    problems = bad(text)
    assert SECRET not in render_all(problems)
    assert SECRET not in repr(problems)


# ---- fixes of any text


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_fixes_mend_whatever_was_done_to_a_good_text(data: st.DataObject):
    text = GOOD_TEXT
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 6)))
        junk = data.draw(st.one_of(st.text(max_size=4), st.sampled_from("\t:{}[]\"'-&*!|>%@`#,\n ?")))
        text = text[:start] + junk + text[end:]
    rounds = 0
    while isinstance(loaded := loads(text, one_job=True), BadManifest) and rounds < _MOST_ROUNDS_OF_ANY_TEXT:
        assert render_all(loaded)
        text = fixed(text, loaded.problems[0])
        rounds += 1
    assert isinstance(loaded, LoadedManifest)
