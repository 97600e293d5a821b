"""A candidate replays real batches on a fork, and writes nothing; the incumbent goes on."""

from tests.spark.rehearsal.conftest import SUM, output, script


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
