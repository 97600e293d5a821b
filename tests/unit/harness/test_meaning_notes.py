"""Which queries a rehearsal asks about: those that the old run works on, and not those that were given up."""

import pytest

from headrace_jobs.harness.meaning import Meaning
from headrace_jobs.harness.meaning_notes import Functions, Meanings, queries_at_work, write_meaning
from headrace_jobs.store import open_store, seed_run
from tests.unit.store.savepoints.checkpoints import FakeQuery

NOTHING_KEPT = Meaning("4.2", "3.11", "append", ())


@pytest.fixture
def store(tmp_path):
    """Run 1 works on two queries, and run 2 has just begun with the state of both."""
    made = open_store(str(tmp_path))
    for name in ("orders", "totals"):
        FakeQuery(store=made, run="run-1", name=name).batches(2)
        write_meaning(made, 1, name, NOTHING_KEPT)
    seed_run(made, 1, 2)
    return made


def asked(store, run, *, starts):
    meanings = Meanings(session=None, functions=Functions(None))
    meanings._meanings = dict.fromkeys(starts, NOTHING_KEPT)
    return meanings.compare(store, run, queries_at_work(store, run)).differences


def test_a_query_that_is_given_up_is_asked_about(store):
    (told,) = asked(store, 1, starts=["orders"])
    assert "query totals is not started any more" in told


def test_once_given_up_it_is_not_asked_about_with_every_later_edit(store):
    write_meaning(store, 2, "orders", NOTHING_KEPT)  # totals is not started by run 2
    assert asked(store, 2, starts=["orders"]) == []
    seed_run(store, 2, 3)
    write_meaning(store, 3, "orders", NOTHING_KEPT)
    assert asked(store, 3, starts=["orders"]) == []


def test_one_that_runs_is_asked_about_whether_it_has_rows_or_not(store):
    write_meaning(store, 2, "orders", NOTHING_KEPT)
    write_meaning(store, 2, "totals", NOTHING_KEPT)  # it has looked, and there was nothing to read
    assert len(asked(store, 2, starts=["orders"])) == 1


def test_one_that_has_moved_is_asked_about_also_where_its_meaning_could_not_be_noted(store):
    write_meaning(store, 2, "orders", NOTHING_KEPT)
    store.put("run-2/queries/totals/offsets/3", b"v1\n{}\n0")
    assert len(asked(store, 2, starts=["orders"])) == 1


def test_before_a_run_has_shown_itself_all_are_asked_about(store):
    assert len(asked(store, 2, starts=["orders"])) == 1
