"""The plan of an edit, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from headrace.api import Change
from headrace.cli.views.paper import columns, facts
from headrace.core.edit_plan import EditPlan, Verdict
from headrace.core.expectations import Expectation

_VERDICTS: dict[Verdict, tuple[str, str]] = {
    Verdict.NOTHING: ("nothing changes", "bold green"),
    Verdict.LIVE: ("applied live: the driver is not touched", "bold green"),
    Verdict.NEW_JOB: ("a new job", "bold cyan"),
    Verdict.NEW_RUN: ("a new run from the same state", "bold yellow"),
    Verdict.REFUSED: ("refused: nothing would change", "bold red"),
}
_CLASS_STYLES = {Change.LIVE: "green", Change.RESTART: "yellow", Change.STATE: "red"}


def plan_page(plan: EditPlan) -> RenderableType:
    text, style = _VERDICTS[plan.verdict]
    if plan.without_state:
        text, style = "a new run WITHOUT the state of the old one", "bold red"
    parts: list[RenderableType] = [Text.assemble((f" {plan.job} ", "bold reverse"), "  ", (text, style))]
    for title, body in _sections(plan):
        parts += [Text(), Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]
    return Group(*parts)


def _sections(plan: EditPlan) -> Iterator[tuple[str, RenderableType]]:
    if plan.refusals:
        yield "Why not", Group(*(_refusal(one.reason, one.message) for one in plan.refusals))
    if plan.changed or plan.code_changed:
        yield "What changes", _changes(plan)
    if plan.steps:
        yield "What happens", _steps(plan)
    if plan.gap is not None and plan.verdict is Verdict.NEW_RUN:
        yield "What it costs", _costs(plan)
    if plan.guarantees:
        title = "What the sinks keep" if plan.sinks_known else "What the sinks keep, by kind"
        yield title, _guarantees(plan)
    if plan.rehearsal_finds:
        yield "What the rehearsal finds", _marked("✔", "green", plan.rehearsal_finds)
    if plan.rehearsal_misses:
        yield "What it does not find", _marked("✘", "red", plan.rehearsal_misses)
    if plan.notes:
        yield "Mind", Group(*(Text(f"· {note}") for note in plan.notes))


def _refusal(reason: str, message: str) -> Text:
    return Text.assemble((f"{reason}: ", "bold red"), message)


def _changes(plan: EditPlan) -> RenderableType:
    table = columns("FIELD", "CLASS", "FROM", "TO")
    table.show_header = False
    for each in plan.changed:
        old = Text("not set", style="dim") if each.old is None else Text(each.old_shown)
        new = Text("not set", style="dim") if each.new is None else Text(each.new_shown)
        arrow = Text.assemble(old, (" → ", "dim"), new)
        table.add_row(each.path, Text(each.change.value, style=_CLASS_STYLES[each.change]), arrow)
    if plan.code_changed:
        table.add_row("code", Text("restart", style="yellow"), "other code than what runs")
    return table


def _steps(plan: EditPlan) -> RenderableType:
    rows = [(f"{number}. {step.name}", Text(step.message)) for number, step in enumerate(plan.steps, start=1)]
    return facts(rows, label_width=12, indent=0)


def _costs(plan: EditPlan) -> RenderableType:
    rows: list[tuple[str, RenderableType | None]] = []
    for label, expected in (("gap", plan.gap), ("catch-up", plan.catch_up)):
        if expected is not None:
            rows.append((label, _expected(expected)))
    return facts(rows, label_width=12, indent=0)


def _expected(expected: Expectation) -> Text:
    text = Text(expected.text)
    for reason in expected.rests_on:
        text.append(f"\n{reason}", "dim")
    return text


def _guarantees(plan: EditPlan) -> RenderableType:
    table = columns("SINK", "A BATCH THAT WAS CUT", "BACK TO AN OLDER BATCH", "FENCES")
    for row in plan.guarantees:
        table.add_row(row.sink.value, row.cut, row.back, "yes" if row.fences else "no")
    return Group(
        Text("After a clean handover each row is in the sink once, whatever it is. Otherwise:"), Text(), table
    )


def _marked(sign: str, style: str, lines: Sequence[str]) -> RenderableType:
    return Group(*(Text.assemble((f"{sign} ", style), line) for line in lines))


def plan_as_json(plan: EditPlan) -> dict[str, Any]:
    """For programs. Values of fields are as shown: secrets among them are masked."""
    return {
        "job": plan.job,
        "verdict": plan.verdict.name.replace("_", " ").title().replace(" ", ""),
        "exitCode": plan.exit_code,
        "sentence": plan.sentence,
        "changes": [
            {
                "field": each.path,
                "class": each.change.value,
                "from": each.old_shown if each.old is not None else None,
                "to": each.new_shown if each.new is not None else None,
            }
            for each in plan.changed
        ],
        "codeChanged": plan.code_changed,
        "withoutState": plan.without_state,
        "steps": [asdict(step) for step in plan.steps],
        "gap": _expectation(plan.gap),
        "catchUp": _expectation(plan.catch_up),
        "sinksKnown": plan.sinks_known,
        "guarantees": [
            {"sink": row.sink.value, "cut": row.cut, "back": row.back, "fences": row.fences}
            for row in plan.guarantees
        ],
        "rehearsal": {"finds": list(plan.rehearsal_finds), "misses": list(plan.rehearsal_misses)},
        "refusals": [asdict(one) for one in plan.refusals],
        "notes": list(plan.notes),
    }


def _expectation(expected: Expectation | None) -> dict[str, Any] | None:
    if expected is None:
        return None
    return {
        "text": expected.text,
        "lowSeconds": expected.low_seconds,
        "highSeconds": expected.high_seconds,
        "restsOn": list(expected.rests_on),
    }
