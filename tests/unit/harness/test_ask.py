"""Asking the agent from inside the pod: with the token of the pod's own file."""

import json
from types import SimpleNamespace

import pytest

from headrace_jobs.harness import ask
from headrace_jobs.harness.agent import Agent, Served
from headrace_jobs.harness.listening import listen


@pytest.fixture
def run_file(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("s3cret\n")
    listening = listen("127.0.0.1", 0)
    served = Served(
        status=lambda: {"phase": "Running"},
        drain=lambda _limit: {},
        metrics=lambda: b"",
        scaling=lambda: {"decisions": [1]},
        keep_scaling=lambda _news: None,
        activate=lambda _body: {},
    )
    agent = Agent(listening, token="s3cret", uid="u", served=served)
    agent.start()
    address = SimpleNamespace(
        host="0.0.0.0", port=listening.getsockname()[1], token_file=str(tmp_path / "token")
    )
    found = SimpleNamespace(agent=address, uid="u")
    monkeypatch.setattr(ask, "read_run_file", lambda _path: found)
    yield found
    agent.close()


def test_the_answer_is_printed(run_file, capsys):
    assert ask.main(["--run-file", "run.json", "/v1/scaling"]) == 0
    assert json.loads(capsys.readouterr().out) == {"decisions": [1]}


def test_a_refusal_is_an_error_and_no_answer(run_file, capsys):
    run_file.uid = "another"
    assert ask.main(["--run-file", "run.json", "/v1/scaling"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "this is attempt u" in said.err


def test_nobody_there_is_said(run_file, capsys):
    run_file.agent.port = 1
    assert ask.main(["--run-file", "run.json", "/v1/status"]) == 1
    assert "cannot be asked" in capsys.readouterr().err
