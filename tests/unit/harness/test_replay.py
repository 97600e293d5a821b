"""Repeating past batches one after the other, without Spark."""

import json

from headrace_jobs.harness.replay import QueryReplay
from headrace_jobs.store.rehearsals import Fork


class Progress:
    def __init__(self, batch, rows):
        self._told = {"batchId": batch, "numInputRows": rows}

    def json(self):
        return json.dumps(self._told)


class Query:
    def __init__(self, *progress):
        self._progress = progress

    def recentProgress(self):
        return self._progress


def a_replay(fork):
    log = []
    ticks = iter(range(100))
    replay = QueryReplay(
        fork,
        asked=3,
        lay_down=lambda batch: log.append(f"lay down {batch}"),
        start=lambda: log.append("start") or object(),
        clock=lambda: next(ticks),
    )
    return replay, log


def test_each_batch_is_laid_down_when_the_one_before_it_has_ended():
    replay, log = a_replay(Fork(query="orders", base=4, planned=(5, 6)))
    replay.begin()
    assert log == ["lay down 5", "start"]
    assert replay.doing() == "in batch 5, the 1. of 2"
    assert replay.next(Query(Progress(5, 10))) is not None
    assert log[2:] == ["lay down 6", "start"]
    assert not replay.done
    assert replay.next(Query(Progress(6, 7))) is None
    assert replay.done
    assert replay.to_json() == {
        "from": 4, "replayed": [5, 6], "asked": 3, "fewer": None, "empty": False, "isNew": False,
        "rows": 17, "batchSeconds": [1, 1],
    }  # fmt: skip


def test_a_new_query_has_what_it_ran():
    replay, log = a_replay(Fork(query="orders", base=-1, planned=(), is_new=True))
    replay.begin()
    assert log == ["start"]
    assert replay.doing() == "in its first batch"
    assert replay.next(Query(Progress(0, 4))) is None
    assert (replay.replayed, replay.rows) == ([0], 4)
