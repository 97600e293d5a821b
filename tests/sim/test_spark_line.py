"""Another minor version of Spark under a job: told once, and the way back is the table's."""

import pytest

from headrace.core.model import Code, Ended, Ending
from tests.sim.test_edit_plan import foretold
from tests.sim.upgrades import condition, is_exact, is_quiet, running, to_trial, ways


def upgraded_to(version: str):
    world = running({"image": "acme/clicks:1"})
    world.edit(image="acme/clicks:2")
    world.spark_version = version
    world.settle()
    assert world.status.last_stable.run == 2
    return world


def test_what_runs_is_in_the_status_and_in_the_history():
    world = upgraded_to("4.3.0")
    assert world.status.run.spark_version == "4.3.0"
    assert [entry.spark_version for entry in world.status.history] == ["4.2.1"]
    is_quiet(world)


@pytest.mark.parametrize(("version", "times"), [("4.3.0", 1), ("4.2.2", 0), ("4.2.1", 0)])
def test_another_minor_version_is_told_once(version, times):
    world = upgraded_to(version)
    assert world.said.count("SparkChanged") == times
    world.driver_ends(Ending.KILLED)
    world.settle()
    assert world.said.count("SparkChanged") == times
    if times:
        assert any("run 2 has Spark 4.3.0, run 1 had 4.2.1" in said for said in world.sentences)


def test_the_plan_of_another_image_says_what_is_at_stake():
    world = running({"image": "acme/clicks:1"})
    notes = foretold(world, image="acme/clicks:2").notes
    assert any("the run has Spark 4.2.1" in note and "no way back but" in note for note in notes)
    assert not any("Spark" in note for note in foretold(world, application={"file": "other.py"}).notes)


def test_what_an_older_spark_cannot_read_is_gone_back_behind():
    world = to_trial("crash-after-2")
    while world.status.run.number < 3 or world.driver is None:
        world.pass_once()
        world.drains_finish()
        world.driver_runs() if world.status.run.number == 2 else None
        world.driver_works()
        world.later(1)
    assert ways(world, 3) == ["Forward"]
    message = "commits/5: v3. The log file was produced by a newer version of Spark and cannot be read"
    world.driver_ends(Ending.QUERY_FAILED, message, error_class="INVALID_LOG_VERSION")
    world.settle(200)
    assert ways(world, 4) == ["Rewound"]
    assert (world.status.last_stable.run, world.pinned[4].code) == (4, "code-1")
    assert "under a new lineage" in condition(world, "RolledBack").message
    assert world.stream.sink.lost() == []
    world.code = Code("code-2")
    world.settle(200)
    assert world.status.last_stable.run == 5


@pytest.mark.parametrize("standby", [True, False])
def test_what_the_candidate_says_of_the_way_back_is_in_the_condition(standby):
    world = running({"upgrade": {"strategy": "Rehearsed", "standby": {"enabled": standby}}})
    world.edit(image="acme/clicks:2")
    while not world.candidates:
        world.pass_once()
    told = "Spark 4.2 → 4.3, ONE WAY: it writes what 4.2 cannot read"
    world.candidates[0].notes = (told,)
    if not standby:  # then its last words say it
        world.rehearsals_end = [Ended(ending=Ending.REHEARSED, message=f"the rehearsal has passed; {told}")]
    world.settle()
    assert world.status.last_stable.run == 2
    assert told in condition(world, "Rehearsed").message
    is_exact(world)


def test_exact_where_it_can_be_read():
    is_exact(upgraded_to("4.3.0"))
