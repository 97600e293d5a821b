"""A candidate replays real batches on a fork, and writes nothing; the incumbent goes on."""

import pytest

from tests.spark.rehearsal.conftest import SUM, output, put_orders, script

pytestmark = pytest.mark.timeout(900)  # several JVMs each


def test_a_good_version_replays_the_last_batches_and_touches_nothing(rehearsals):
    incumbent = rehearsals.start_incumbent()
    pid, before = incumbent.process.pid, output(rehearsals.place)
    end = rehearsals.rehearse(script(SUM + '.where("total >= 0")'))
    assert end["reason"] == "Rehearsed", end["log"]
    result = end["rehearsal"]
    assert result["outcome"] == "Passed"
    told = result["queries"]["totals"]
    assert (told["from"], told["replayed"], told["rows"], told["fewer"]) == (2, [3, 4, 5], 9, None)
    assert len(told["batchSeconds"]) == 3
    assert any("foreachBatch" in note for note in result["notes"])
    assert output(rehearsals.place) == before
    rehearsals.assert_untouched()
    assert incumbent.process.poll() is None
    assert incumbent.process.pid == pid


def test_a_refused_version_costs_the_incumbent_no_batch(rehearsals):
    """Input goes on all the while: each file is a batch of its own, made by the same driver."""
    incumbent = rehearsals.start_incumbent()
    pid, files, meanwhile = incumbent.process.pid, 6, 0
    aggregates = 'totals = orders.groupBy("user").agg(F.sum("amount").alias("total"), F.max("amount"))'
    candidate = rehearsals.start_candidate(script(aggregates))
    while candidate.process.poll() is None:
        put_orders(rehearsals.place, files)
        incumbent.wait_for_batch("totals", files)
        files += 1
        meanwhile += candidate.process.poll() is None
    end = candidate.end()
    assert end["errorClass"] == "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", candidate.log()
    assert meanwhile > 0
    lines = output(rehearsals.place)
    assert [line["batch"] for line in lines] == list(range(files))
    assert {(line["run"], line["epoch"]) for line in lines} == {(1, lines[0]["epoch"])}
    assert (incumbent.process.poll(), incumbent.process.pid) == (None, pid)


@pytest.mark.full
def test_another_meaning_passes_when_the_spec_vouches_for_it(rehearsals):
    rehearsals.start_incumbent()
    became_max = script(SUM.replace("F.sum", "F.max"))
    assert rehearsals.rehearse(became_max)["reason"] == "MeaningChanged"
    end = rehearsals.rehearse(became_max, rehearsal={"stateCompatible": True})
    assert end["reason"] == "Rehearsed", end["log"]
    assert end["rehearsal"]["differences"] == ["query totals: sum(amount) became max(amount)"]
    # Of other sources, nothing that was recorded can be repeated: one empty batch proves the rest.
    (rehearsals.place / "other").mkdir()
    elsewhere = script(SUM).replace('place / "in"', 'place / "other"')
    end = rehearsals.rehearse(elsewhere, rehearsal={"stateCompatible": True})
    assert end["reason"] == "Rehearsed", end["log"]
    assert end["rehearsal"]["queries"]["totals"]["empty"]
    assert "its sources were files in" in end["rehearsal"]["differences"][0]
    rehearsals.assert_untouched()
