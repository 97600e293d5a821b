"""The list of alerts, and the pages made from it."""

import re
from pathlib import Path

import pytest

from headrace.runtime.alert_pages import RUNBOOK, anchor, runbook_page
from headrace.runtime.alerts import ALERTS, Alert

ROOT = Path(__file__).parents[3]
BY_NAME = [pytest.param(alert, id=alert.name) for alert in ALERTS]


def test_what_a_platform_team_wants_to_hear_of_is_there():
    assert {alert.name.removeprefix("Headrace") for alert in ALERTS} >= {
        "LagOverObjective",
        "LatencyOverObjective",
        "CheckpointFailing",
        "CheckpointStale",
        "Backpressure",
        "JobNotReady",
        "JobRestartLoop",
        "NotReconciling",
    }
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)


@pytest.mark.parametrize("alert", BY_NAME)
def test_an_alert_leads_to_its_section_of_the_runbook(alert: Alert):
    sections = re.findall(r"^### (.*)$", (ROOT / RUNBOOK).read_text(), re.MULTILINE)
    assert anchor(alert.name) in {title.lower() for title in sections}
    assert alert.look
    assert alert.act


def test_the_links_of_the_runbook_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", runbook_page())
    assert links
    for path, section in links:
        page = (ROOT / RUNBOOK).parent / path
        assert page.is_file(), path
        titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
        assert not section or section in {title.lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("alert", BY_NAME)
def test_a_sentence_uses_only_labels_that_the_alert_has(alert: Alert):
    told = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.description))
    has = {"jobs": {"namespace", "job", "query"}, "operator": set[str]()}[alert.group]
    # Those that the expression itself chooses by are there, too.
    assert told <= has | set(re.findall(r"(\w+)=~?\"", alert.expr))
