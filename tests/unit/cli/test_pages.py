"""What people see of `kubectl streamjob`, page by page, as a whole.

After a change that is meant: HEADRACE_REWRITE_GOLDEN=1 python -m pytest tests/unit/cli/test_pages.py
"""

import io
import os
import re
from pathlib import Path

import pytest
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType

from headrace.cli.views.pages import event_table, history_page, job_list
from headrace.cli.views.paper import console, show
from headrace.cli.views.plan import plan_as_json, plan_page
from headrace.cli.views.status import StatusPage, status_page
from headrace.core.expectations import Figures
from tests.unit.cli.fakes import NOW
from tests.unit.cli.samples import (
    FAILING,
    FINE,
    NEW,
    REFUSED,
    ROLLED_BACK,
    SUSPENDED,
    UPGRADING,
    a_live_job,
    parsed_savepoint,
)
from tests.unit.core.edits import a_job, planned, saved
from tests.unit.core.edits import a_status as a_planned_status
from tests.unit.core.edits import ready as ready_after

GOLDEN = Path(__file__).parent / "golden"
SCREENSHOT = Path(__file__).parents[3] / "docs/images/kubectl-streamjob-status.svg"


def page_of(status, **more) -> RenderableType:
    known = {"savepoint": parsed_savepoint(), "savepoints": 24} if status is not NEW else {}
    if status is FINE:
        known["figures"] = Figures(
            batch_seconds=4.0, arrival_rows_per_second=12_400, capacity_rows_per_second=31_000
        )
    return status_page(StatusPage(job=a_live_job(status, **more), now=NOW, **known))


def a_plan():
    job = a_job(image="acme/clicks:1.4.2", executors={"count": 2})
    new = a_job(image="acme/clicks:1.4.3", executors={"count": 4}, sparkConf={"spark.my.token": "t"})
    figures = Figures(
        batch_seconds=4.0,
        savepoint=saved(3),
        arrival_rows_per_second=12_400,
        capacity_rows_per_second=31_000,
        sinks=("KafkaTable", "ForeachBatchSink"),
    )
    status = a_planned_status(job, conditions=(ready_after(21),))
    return planned(job, new, status=status, figures=figures)


def events():
    decided = {"kind": "StreamJob", "name": "clicks"}
    happened = {"kind": "Pod", "name": "clicks-r4-a1"}
    return [
        {
            "involvedObject": decided,
            "type": "Normal",
            "reason": "Upgrade",
            "message": "run 4: the code changed",
            "count": 1,
            "lastTimestamp": "2026-05-01T11:00:00Z",
            "metadata": {"creationTimestamp": "2026-05-01T11:00:00Z"},
        },
        {
            "involvedObject": happened,
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": "0/3 nodes are available",
            "count": 7,
            "lastTimestamp": "2026-05-01T11:59:00Z",
            "metadata": {"creationTimestamp": "2026-05-01T11:30:00Z"},
        },
    ]


PAGES = {
    "status-fine": lambda: page_of(FINE),
    "status-failing": lambda: page_of(FAILING),
    "status-upgrading": lambda: page_of(UPGRADING),
    "status-rolled-back": lambda: page_of(ROLLED_BACK),
    "status-refused": lambda: page_of(REFUSED),
    "status-suspended": lambda: page_of(SUSPENDED),
    "status-new": lambda: page_of(NEW),
    "status-paused": lambda: page_of(FINE, annotations={"headrace.dev/paused": "true"}),
    "status-edited": lambda: page_of(FINE, generation=2),
    "list": lambda: job_list(
        [a_live_job(one) for one in (FINE, FAILING, UPGRADING, ROLLED_BACK, SUSPENDED, NEW)],
        NOW,
        everywhere=True,
    ),
    "history": lambda: history_page(a_live_job(FINE), NOW),
    "events": lambda: event_table(events(), NOW),
    "plan-new-run": lambda: plan_page(a_plan()),
    "plan-unknown": lambda: plan_page(planned(a_job(), a_job(image="acme/clicks:2"), code=None)),
    "plan-live": lambda: plan_page(planned(a_job(), a_job(executors={"count": 4}))),
    "plan-refused": lambda: plan_page(
        planned(a_job(), a_job(checkpoint={"s3": {"endpoint": "https://s3.example.com"}}))
    ),
    "plan-nothing": lambda: plan_page(planned(a_job(), a_job())),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page(name: str):
    out = io.StringIO()
    show(PAGES[name](), out=out, whole_lines=name == "list")
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("HEADRACE_REWRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(out.getvalue())
    assert out.getvalue() == path.read_text()


def test_the_screenshot_of_the_docs_is_what_people_see():
    paper = Console(record=True, width=104, force_terminal=True, file=io.StringIO(), highlight=False)
    paper.print("[dim]$[/dim] kubectl streamjob status clicks\n")
    paper.print(page_of(FAILING))
    # Without the web fonts that Rich names: a page of docs asks nobody else for anything.
    frame = re.sub(r" *@font-face {{.*?}}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    frame = frame.replace("Fira Code, monospace", "DejaVu Sans Mono, monospace")
    picture = paper.export_svg(title="kubectl streamjob status", code_format=frame, unique_id="status")
    if os.environ.get("HEADRACE_REWRITE_GOLDEN"):
        SCREENSHOT.write_text(picture)
    assert picture == SCREENSHOT.read_text()


def test_no_page_is_left_that_nobody_makes():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(PAGES)


def test_colours_are_for_terminals_only():
    plain = io.StringIO()
    console(plain).print(page_of(FAILING))
    assert "\x1b[" not in plain.getvalue()
    terminal = Console(file=io.StringIO(), force_terminal=True, width=110)
    terminal.print(page_of(FAILING))
    assert "\x1b[" in terminal.file.getvalue()


def test_a_page_fits_a_narrow_terminal():
    narrow = Console(file=io.StringIO(), width=80)
    narrow.print(page_of(FAILING), page_of(UPGRADING), PAGES["plan-new-run"]())
    assert max(map(len, narrow.file.getvalue().splitlines())) <= 80


def test_the_plan_for_programs_has_no_secret_and_every_part():
    told = plan_as_json(a_plan())
    assert told["verdict"] == "NewRun" and told["exitCode"] == 10
    assert {"field": 'spec.sparkConf["spark.my.token"]', "class": "restart", "from": None, "to": "***"} in (
        told["changes"]
    )
    assert (told["gap"]["lowSeconds"], told["gap"]["highSeconds"]) == (0, 28)
    assert [step["name"] for step in told["steps"]][-1] == "promote"
    assert {row["sink"] for row in told["guarantees"]} == {
        "Kafka",
        "foreachBatch with a ledger",
        "foreachBatch without one",
    }
