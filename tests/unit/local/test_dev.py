"""When `headrace dev` ends by itself. The drivers are the ones of the simulated world."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.api import StreamJob
from headrace.core.model import Ending
from headrace.local.dev import DevOptions, DevSession
from tests.sim.world import World


class Substrate:
    """Drivers that complete as soon as they run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.drivers = SimpleNamespace(report=None)

    def observe(self, job, _status):
        self.world.job = job
        self.world.driver_runs()
        self.world.driver_ends(Ending.COMPLETED)
        return self.world.observe()

    def perform(self, _job, action):
        self.world._perform(action)

    def halt(self):
        pass


class View:
    """Presses Ctrl-C when it has seen a completed job twice: it would wait for ever."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.stop = lambda: None

    def say(self, _sentence):
        pass

    def show(self, snapshot):
        self.states.append(snapshot.status.state)
        if self.states[-2:] == ["Completed"] * 2:
            self.stop()

    def close(self):
        pass


NIGHTLY = {"mode": "AvailableNow", "schedule": "30 1 1 1 *"}


@pytest.mark.parametrize(
    ("trigger", "once", "waits"),
    [({"mode": "AvailableNow"}, False, False), (NIGHTLY, False, True), (NIGHTLY, True, False)],
)
def test_a_completed_job_ends_the_session_unless_it_has_a_next_time(tmp_path: Path, trigger, once, waits):
    manifest = tmp_path / "job.yaml"
    manifest.write_text("watched for edits")
    job = StreamJob.parse(
        {"metadata": {"name": "nightly"}, "spec": {"application": {"file": "job.py"}, "trigger": trigger}}
    )
    view = View()
    options = DevOptions(manifest=manifest, state_dir=tmp_path / "state", once=once)
    session = DevSession(options, job, lambda: job, view)
    session._substrate = Substrate(World(session._job))
    view.stop = session.stop
    assert session.run() == 0
    assert "Completed" in view.states
    assert view.states[-1] == ("Detached" if waits else "Completed")
