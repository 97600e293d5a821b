"""A load that changes fast: what is growth, what a jump, what noise; and what must be forgotten then."""

import random
from dataclasses import replace

import pytest

from headrace.core.autoscale import Executors, Limits, Memory, Observation, Reason, decide
from headrace.core.autoscale.memory import QueryMemory
from headrace.core.lag import Offsets, Partition
from tests.unit.autoscale.story import Story, a_settled_job, limits


def seen(*rates: float) -> QueryMemory:
    """Looked at every 15 seconds; it arrived at these rates in between."""
    arrived, total = [(0.0, 0.0)], 0.0
    for index, rate in enumerate(rates, start=1):
        total += 15 * rate
        arrived.append((15.0 * index, total))
    return QueryMemory(arrived=tuple(arrived))


STEADY = [1000.0] * 15


@pytest.mark.parametrize(
    ("lately", "grows"),
    [
        ([1200, 1400, 1600, 1800], True),
        ([1040, 1080, 1120, 1160], False),
        ([1000, 1000, 1000, 3000], False),
        ([1000, 1700, 3000, 3000], False),
        ([1000, 1500, 2500, 3000], False),
        ([1900, 1800, 1700, 1600], False),
        ([1000, 1000, 1000, 1000], False),
    ],
    ids=[
        "a ramp",
        "by little",
        "a jump",
        "a jump that is over",
        "a jump of half a minute",
        "falling",
        "steady",
    ],
)
def test_only_a_load_that_goes_on_growing_grows(lately, grows):
    newest, slope = seen(*STEADY, *lately).growth
    assert newest == lately[-1]
    assert slope == (pytest.approx(200 / 15) if grows else 0)


def test_a_long_ramp_is_no_noise():
    assert seen(*(1000 + 200 * index for index in range(18))).growth[1] == pytest.approx(200 / 15)


def test_noise_is_neither_growth_nor_a_jump():
    chance = random.Random(1)
    rates = [1000 * chance.lognormvariate(0, 0.25) for _ in range(2000)]
    for index in range(20, len(rates)):
        assert seen(*rates[index - 20 : index]).growth[1] == 0
    assert seen(*rates).noise == pytest.approx(250, rel=0.1)
    job = a_settled_job(rows_per_second=3300)
    for rate in rates[:120]:
        job.run(15, rows_per_second=2.6 * rate)
        assert job.executors <= 6


def test_executors_are_asked_for_that_a_growing_load_will_need_when_they_are_there():
    """It grows by a fifth of what it was every look: those who start take a minute."""
    job = a_settled_job(rows_per_second=2500, limits=limits(max=20))
    moves = []
    for step in range(1, 7):
        last = job.run(15, rows_per_second=2500 + 500 * step)
        moves += [last] if last.moves else []
    foreseen = [one for one in moves if "will if it grows on as it does" in one.message]
    assert foreseen and {one.reason for one in foreseen} == {Reason.ARRIVAL_EXCEEDS_CAPACITY}
    assert foreseen[0].target * 1000 > 1.4 * (foreseen[0].numbers.arrival_rows_per_second or 0.0)


def test_a_load_that_has_grown_is_not_believed_to_grow_for_ever():
    job = a_settled_job(rows_per_second=2500, limits=limits(max=40), partitions=240)
    for step in range(1, 6):
        job.run(15, rows_per_second=2500 * 1.6**step)
    assert job.executors * 1000 < 2.6 * job.rows_per_second


def test_that_many_did_not_help_says_nothing_of_few():
    """They were blocked at 12, for half an hour. The load went down, the job with it, and comes back."""
    job = a_settled_job(rows_per_second=3300, partitions=240, limits=limits(max=40))
    job.run(1500, rows_per_second=4400, sink_rows_per_second=4000)
    block = job.memory.block
    assert block is not None and block.before < block.executors
    job.memory = replace(job.memory, block=replace(block, until=job.now + 1e6, capacity=1e12))
    job.run(3600, rows_per_second=800)
    assert job.executors < block.before
    assert job.memory.block is None
    last = job.run(120, rows_per_second=3000)
    assert job.executors > 2, last.message


def test_a_block_that_an_older_operator_has_kept_is_read():
    job = a_settled_job(rows_per_second=3300, partitions=240, limits=limits(max=40))
    job.run(1500, rows_per_second=4400, sink_rows_per_second=4000)
    kept = job.memory.to_json()
    del kept["block"]["before"]
    assert Memory.from_json(kept).block is not None


@pytest.mark.parametrize(("reload", "goes"), [(70.0, True), (110.0, False)])
def test_a_job_with_little_to_do_gives_up_its_second_executor_if_its_state_can_be_moved_in_time(reload, goes):
    """The objective is 60 s, four fifths of which may be used. Half of the state moves, onto two cores: what
    comes while it is loaded is next to nothing, and does not count twice."""
    job = a_settled_job(rows_per_second=40, executors=2, fixed_seconds=1.5)
    query = job.memory.queries["clicks"]
    fit = replace(query.fit, reload=4 * reload / 2)
    job.memory = replace(job.memory, queries={"clicks": replace(query, fit=fit)})
    job.executors = job.ready = 2
    job.run(1200)
    assert job.executors == (1 if goes else 2)


def test_after_a_time_in_which_nobody_looked_nothing_is_taken_away_before_it_was_watched_again():
    """An upgrade, or an operator that was away: what was needed meanwhile is not known."""
    job = a_settled_job(rows_per_second=3300)
    before = job.executors
    job.now += 400
    job.batch_ends_at = job.now
    first = job.run(15, rows_per_second=300)
    assert first.numbers.arrival_rows_per_second < 500, "it looks as if little came"
    assert job.executors == before
    job.run(120)
    assert job.executors == before
    job.run(400)
    assert job.executors < before


class Compacted(Story):
    """Every other offset holds no row."""

    def offsets(self):
        return Offsets(
            {
                name: Partition(end=2 * one.end, committed=2 * (one.committed or 0), earliest=0)
                for name, one in super().offsets().partitions.items()
            }
        )


def test_in_a_compacted_topic_arrival_and_lag_are_rows_and_not_offsets():
    plain, job = Story(rows_per_second=3300), Compacted(rows_per_second=3300)
    expected, found = plain.run(1800), job.run(1800)
    assert found.numbers.arrival_rows_per_second == pytest.approx(3300, rel=0.1)
    assert found.numbers.lag_rows == pytest.approx(expected.numbers.lag_rows, rel=0.15)
    assert found.target == expected.target


def test_of_several_queries_the_nearest_data_loss_counts():
    job = a_settled_job(rows_per_second=3300)
    near = job.query_seen([])
    for retention, name in ((7200.0, "far"), (900.0, "near")):
        source = Offsets(
            {f"{name}/0": Partition(end=90_000, committed=0, earliest=0, unread_since=job.now - 600)}
        )
        near = replace(near, name=name, source=source, retention_seconds=retention, deletes_by_size=False)
        job.query = {**job.query, name: near}
    observation = Observation(
        at=job.now,
        queries=(job.query["far"], job.query["near"]),
        executors=Executors(cores=2, asked=4, ready=4),
        limits=Limits(max=12),
    )
    _, memory = decide(observation, Memory())
    decision, _ = decide(replace(observation, at=job.now + 15), memory)
    assert decision.emergency
    assert decision.numbers.seconds_to_data_loss == pytest.approx(300, rel=0.1)
