"""`from headrace_jobs import run`: true under Headrace, harmless without it."""

import pytest

from headrace_jobs import run


@pytest.fixture
def managed(monkeypatch):
    encoded = run.encode(
        job=run.JobRef("shop", "orders", "j-1"), number=3, attempt=2, epoch=7, rehearsing=False
    )
    monkeypatch.setenv(run.VARIABLE, encoded)


def test_without_headrace_it_is_harmless(monkeypatch):
    monkeypatch.delenv(run.VARIABLE, raising=False)
    assert (run.managed, run.epoch, run.number, run.attempt, run.rehearsing) == (False, 0, 1, 1, False)
    assert run.job == run.JobRef("", "", "")


@pytest.mark.usefixtures("managed")
def test_under_headrace_it_tells_the_run():
    assert (run.managed, run.epoch, run.number, run.attempt, run.rehearsing) == (True, 7, 3, 2, False)
    assert run.job.name == "orders"


def test_a_batch_is_known_inside_it_and_forgotten_after_it():
    with run.batch(5, "lineage-1"):
        assert (run.batch_id, run.lineage()) == (5, "lineage-1")
        with run.batch(6, "lineage-2"):
            assert run.batch_id == 6
        assert run.batch_id == 5


def test_a_lineage_is_known_by_the_querys_name():
    run.remember_lineage("orders-of-tests", "lineage-3")
    assert run.lineage("orders-of-tests") == "lineage-3"
    assert run.lineage("no-such-query") is None


def test_unknown_names_are_an_error_and_known_ones_are_listed():
    with pytest.raises(AttributeError):
        _ = run.nonsense
    assert {"epoch", "batch_id", "lineage", "rehearsing"} <= set(dir(run))
