"""What the autoscaler keeps between two looks."""

import json
from dataclasses import replace

from headrace.core.autoscale import Batch, Executors, Memory, Observation, decide
from headrace.core.lag import Offsets, Partition
from tests.unit.autoscale.story import Story, a_settled_job, limits, one_look


def test_what_is_looked_at_once_is_learned_from_once():
    job = a_settled_job(rows_per_second=3300)
    before = job.memory.queries["clicks"]
    again = Observation(
        at=job.now + 15,
        queries=(replace(job.query_seen([]), looked_at=job.now),),
        executors=Executors(cores=2, asked=4, ready=4),
        limits=limits(),
    )
    _, memory = decide(again, job.memory)
    assert memory.queries["clicks"] == before


def test_the_memory_is_json_and_a_decision_does_not_depend_on_where_it_was_kept():
    kept, stored = Story(rows_per_second=3300), Story(rows_per_second=3300)
    for step in range(120):
        load = 3300 if step < 60 else 7000
        stored.memory = Memory.from_json(json.loads(json.dumps(stored.memory.to_json())))
        assert kept.run(15, rows_per_second=load).target == stored.run(15, rows_per_second=load).target
    assert len(json.dumps(kept.memory.to_json())) < 4000


def test_a_memory_of_another_version_is_forgotten():
    assert Memory.from_json({"version": 0, "queries": "?"}) == Memory()


def test_batches_that_were_seen_before_are_not_learned_twice():
    batches = tuple(Batch(number=n, seconds=3, rows=1000 + n, executors=3) for n in range(9))
    source = Offsets({"a/0": Partition(end=10, committed=4)})
    _, once = decide(one_look(source=source, batches=batches), Memory())
    _, twice = decide(one_look(source=source, batches=batches), once)
    assert once.queries["q"].fit.batches == twice.queries["q"].fit.batches == 9
