"""What a soak gives: fitted where the truth is known, and judged by goals that see a wrong prediction."""

import argparse
import json
import random
import re
import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest
from bench import soak
from bench.soak import GOALS, day, play, report
from bench.soak_compare import (
    errors,
    predicted,
    real_result,
    scenario,
    table_of_constants,
)
from bench.soak_fit import busiest_core, fit, ran_by, robust, startups
from bench.soak_record import Batch, Commit, Executor, Move, Record, Sample

from headrace.simulate import parameters
from headrace.simulate.parameters import DEFAULT
from headrace.simulate.run import Result
from tests.e2e.kafka_tool import _moments

EPOCH = 1_800_000_000.0
FIXED, PER_ROW, CONTENTION, COMMIT = 1.6, 0.021, 0.05, 0.4
SHARES = (250, 200, 200, 150, 100, 100)
# When executors came and went beside the first one; their first batches are slow, and the first one after any
# change loads state.
OTHERS = ((300, 850), (500, 850), (900, 1100), (1000, 1100))
WARM_UP, RELOAD = 1.5, 2.0


def a_record(*, odd: float = 0.05, **changes) -> Record:
    """A day whose batches cost what is written above, with odd ones among them."""
    return replace(_made(random.Random(7), odd), **changes)


def _made(chance: random.Random, odd: float) -> Record:
    executors = [Executor("0", EPOCH - 100, None, 0, 50)]
    for number, (came, went) in enumerate(OTHERS, start=1):
        executors.append(Executor(str(number), EPOCH + came, EPOCH + went, number - 1, 40))
    shares, batches, worked = [one / 1000 for one in SHARES], list[Batch](), dict[str, int]()
    before, began = set[str](), 0.0
    for number in range(200):
        there = {
            one.name
            for one in executors
            if one.added <= EPOCH + began and (one.removed is None or one.removed > EPOCH + began)
        }
        rows = chance.randrange(20, 220 * len(there))
        cold = sum(worked.get(name, 0) < 2 for name in there) / len(there)
        work = rows * PER_ROW * busiest_core(shares, len(there)) * (1 + CONTENTION * (len(there) - 1))
        seconds = (FIXED + work * (1 + cold * (WARM_UP - 1))) * chance.uniform(0.97, 1.03)
        if before and before != there:
            moved = -(-2 * (len(before - there) / len(before) + 0.5 * len(there - before) / len(there)) // 1)
            seconds += moved * RELOAD / len(there)
        elif chance.random() < odd:
            seconds += 9.0  # something else took long
        batches.append(Batch(number, EPOCH + began, seconds, rows, len(there)))
        for name in there:
            worked[name] = worked.get(name, 0) + 1
        before, began = there, began + max(seconds, 5.0)
    return Record(
        rates=day(20.0),
        step_seconds=15.0,
        max_executors=3,
        cores=1,
        partitions=6,
        shuffle_partitions=2,
        trigger_seconds=5.0,
        objective_seconds=60.0,
        seconds_per_row=0.02,
        read_part=1.0,
        began=EPOCH,
        rows_before=0,
        samples=tuple(
            Sample(
                at=EPOCH + 10.0 * look, asked=1, ready=1, pods=1, lag_at=EPOCH + 10.0 * look, lag_seconds=6.0
            )
            for look in range(120)
        ),
        batches=tuple(batches),
        moves=tuple(
            Move(EPOCH + at, target)
            for at, target in ((262, 2), (470, 3), (840, 1), (870, 2), (960, 3), (1090, 1))
        ),
        executors=tuple(executors),
        commits=tuple(Commit(number, COMMIT * chance.lognormvariate(0, 0.3)) for number in range(100)),
        partition_rows=SHARES,
        complete=True,
        exact=True,
        same_driver=True,
    )


def as_seen(record: Record, result: Result) -> Record:
    """A cluster that does what this simulation did, batches included."""
    samples = tuple(
        Sample(
            at=EPOCH + one.at,
            asked=one.asked,
            ready=one.ready,
            pods=max(one.asked, one.ready),
            lag_at=EPOCH + one.at,
            lag_seconds=one.lag_seconds,
        )
        for one in result.points
    )
    return replace(record, samples=samples)


# ---- the fit


def test_the_cost_of_a_batch_is_found_among_odd_ones():
    found = fit(a_record())
    assert found.fixed_seconds == pytest.approx(FIXED, abs=0.1)
    assert found.core_seconds_per_row == pytest.approx(PER_ROW, rel=0.03)
    assert found.contention == pytest.approx(CONTENTION, abs=0.03)
    assert found.median_error < 0.04


def test_what_happens_now_and_then_is_found_by_itself():
    found = fit(a_record())
    assert found.hiccup_probability.value == pytest.approx(0.05, abs=0.03)
    assert found.hiccup_seconds.value == pytest.approx(9.0, rel=0.1)
    assert found.commit_median_seconds.value == pytest.approx(COMMIT, rel=0.15)
    assert found.commit_sigma.value == pytest.approx(0.3, abs=0.1)
    assert found.warm_up_slowdown.value == pytest.approx(WARM_UP, abs=0.3)
    assert found.reload_seconds.value == pytest.approx(RELOAD, abs=0.6)


def test_few_rows_that_are_wrong_do_not_move_a_fit_and_many_right_ones_do():
    xs = [float(x) for x in range(40)]
    wanted = [2.0 + 3.0 * x for x in xs]
    spoiled = [one + 100 if index % 5 == 0 else one for index, one in enumerate(wanted)]
    assert robust([[1.0] * 40, xs], spoiled) == pytest.approx([2.0, 3.0], abs=0.05)


def test_a_batch_is_that_of_the_executors_it_ran_on():
    """One that came in its middle did not do half of it, though it was there at the end."""
    record = a_record(
        executors=(Executor("0", EPOCH - 9, None, 0, 1), Executor("1", EPOCH + 15, None, 0, 1)),
        batches=(
            Batch(0, EPOCH, 8.0, 300, 1),
            Batch(1, EPOCH + 10, 8.0, 300, 2),
            Batch(2, EPOCH + 20, 5.0, 300, 2),
            Batch(3, EPOCH + 30, 5.0, 0, 2),
        ),
    )
    seen = [(one.batch.number, one.executors, one.came) for one in ran_by(record)]
    assert seen == [(0, 1, 1), (2, 2, 1)]
    without_books = [(one.batch.number, one.executors) for one in ran_by(replace(record, executors=()))]
    assert without_books == [(2, 2)]


def test_too_few_batches_are_no_fit():
    with pytest.raises(SystemExit, match="only 0 batches on settled executors"):
        fit(a_record(batches=(Batch(0, EPOCH, 1.0, 10, 1), Batch(1, EPOCH + 5, 1.0, 10, 1))))


def test_a_start_lasts_from_the_decision_to_the_entry_in_sparks_books():
    assert startups(a_record()) == [38, 30, 30, 40]
    # A move down is no wish for more.
    between = a_record(moves=(Move(EPOCH + 262, 2), Move(EPOCH + 290, 1)))
    assert startups(between) == [38, 238, 638, 738]


def test_the_day_begins_with_its_first_row_and_not_with_its_producer():
    sums, arrived = 40, list[Sample]()
    rates = day(20.0)
    for index in range(1, 80):
        sums += rates[index - 1] * 15
        at = EPOCH + 7.5 + 15.0 * index  # the producer took 7.5 s to start
        arrived.append(
            Sample(at=at + 3, asked=1, ready=1, pods=1, lag_at=at, lag_seconds=5.0, arrived_rows=int(sums))
        )
    assert a_record(samples=tuple(arrived), rows_before=40).zero() == pytest.approx(EPOCH + 7.5, abs=0.2)


# ---- the prediction


@pytest.fixture(scope="module")
def as_predicted() -> Record:
    """Batches and looks of a cluster that works as the fitted simulator says."""
    record = a_record(odd=0.0)
    return as_seen(record, predicted(record, fit(record))[0])


def goals_missed(record: Record, world) -> set[str]:
    guesses = [world.play(world.headrace(), seed) for seed in (2, 3, 4)]
    figures = soak._of_errors(errors(record, world, guesses), "")
    return {name for name, value, _ in figures if name in GOALS and value > GOALS[name]}


def test_a_cluster_that_does_as_predicted_meets_every_goal(as_predicted):
    assert goals_missed(as_predicted, scenario(as_predicted, fit(as_predicted))) == set()
    assert max(one.asked for one in real_result(as_predicted).points) == 3


def test_a_simulator_that_works_behind_a_narrow_shuffle_misses_goals(as_predicted):
    """The job works where it reads. Executors come at the same time, and cost the same."""
    world = scenario(as_predicted, fit(as_predicted))
    wrong = replace(world, parameters=replace(world.parameters, read_part=0.55))
    missed = goals_missed(as_predicted, wrong)
    assert "batch_error_pct" in missed
    assert missed & {"lag_p95_error_s", "over_objective_error_pct"}


@pytest.mark.parametrize(
    "wrong", [{"planning_seconds": 6.0}, {"contention": 0.4}], ids=["fixed part", "contention"]
)
def test_a_simulator_with_another_cost_misses_goals(as_predicted, wrong):
    world = scenario(as_predicted, fit(as_predicted))
    assert "batch_error_pct" in goals_missed(
        as_predicted, replace(world, parameters=replace(world.parameters, **wrong))
    )


def test_a_cluster_that_does_otherwise_shows():
    record = a_record()  # one executor, all day, and never late
    missed = goals_missed(record, scenario(record, fit(record)))
    assert {"executor_hours_error_pct", "executors_off"} <= missed


def test_the_simulated_job_is_the_one_that_was_played():
    record = a_record()
    world = scenario(record, None)
    assert world.parameters.read_part == 1.0
    assert world.cost(1).shares == [one / 1000 for one in SHARES]
    assert world.trace.length_seconds == record.seconds == 1200
    rows = sum(world.trace.by_second())
    assert rows == pytest.approx(sum(record.rates) * 15, rel=0.005)


def test_a_look_that_finds_no_newer_lag_counts_once():
    late = Sample(at=EPOCH + 10, asked=1, ready=1, pods=1, lag_at=EPOCH + 8, lag_seconds=90.0)
    samples = (
        late,
        replace(late, at=EPOCH + 20),
        replace(late, at=EPOCH + 30, lag_at=EPOCH + 28, lag_seconds=5.0),
        replace(late, at=EPOCH + 40, lag_at=None, lag_seconds=None),
    )
    found = real_result(a_record(samples=samples))
    assert found.over_objective_pct == 50
    assert [point.lag_seconds for point in found.points] == [90.0, 90.0, 5.0]


def test_pods_are_paid_for_while_they_are_there():
    sample = Sample(at=EPOCH, asked=1, ready=1, pods=1, lag_at=EPOCH, lag_seconds=1.0)
    looks = (sample, replace(sample, at=EPOCH + 600, pods=3))
    assert real_result(a_record(samples=looks)).executor_hours == pytest.approx((600 + 1800) / 3600)


def test_constants_say_what_they_were_made_of():
    found = soak.constants(a_record(commits=()))
    by_name = {one.name: one for one in found}
    assert by_name["startup_median_seconds"].found == 34
    assert by_name["startup_sigma"].found is None  # of four starts nobody can tell
    text = table_of_constants(found)
    assert "startup_median_seconds   35 -> 34" in text and "(4 starts)" in text
    assert f"commit_median_seconds    {DEFAULT.commit_median_seconds:g} stays" in text


def test_every_constant_of_the_simulator_says_where_it_comes_from():
    """And `measured` is what the record that lies beside the bench gives: nothing else, and all of it."""
    text = Path(parameters.__file__).read_text()
    said = dict(
        re.findall(r"^    (\w+): \w+ = [^#]+  # (chosen|known|measured|assumed)\b", text, re.MULTILINE)
    )
    assert said.keys() == {one.name for one in fields(parameters.Parameters)}
    measured = {name: getattr(DEFAULT, name) for name, source in said.items() if source == "measured"}
    kept = soak.ROOT / "bench/records/soak.json"
    found = soak.constants(Record.from_json(json.loads(kept.read_text()))) if kept.exists() else []
    given = {one.name: one.found for one in found if one.found is not None}
    assert measured == pytest.approx(given, rel=0.01)


# ---- the run


class Stage:
    """A cluster that answers what it is told to."""

    rows_produced = 200

    def __init__(self, record: Record, *, fails: str | None = None, silent: bool = False) -> None:
        self.record, self.fails, self.silent = record, fails, silent
        self.looked = threading.Event()

    def driver_uid(self):
        return "uid"

    def produce(self, rates, step_seconds):
        assert self.looked.wait(20)
        if self.fails:
            raise RuntimeError(self.fails)

    def look(self):
        self.looked.set()
        if self.silent:
            return None
        record = self.record
        return argparse.Namespace(
            sample=record.samples[0], batches=record.batches, move=None, commit=None, partition_rows=SHARES
        )

    def books(self):
        return None

    def exact(self, *, seconds):
        return True

    def decisions(self):
        return ("why",)


def test_the_record_is_kept_before_anything_is_compared(monkeypatch):
    kept, order = list[Record](), list[str]()
    monkeypatch.setattr(soak, "report", lambda record: order.append("compared"))

    def keep(record: Record) -> None:
        kept.append(record)
        order.append("kept")

    play(Stage(a_record()), day(20.0), keep=keep)
    assert order == ["kept", "kept", "compared"]
    assert kept[-1].complete and kept[-1].exact and kept[-1].decisions == ("why",)
    assert kept[-1].rows_before == 200
    assert len(kept[-1].batches) == 200


def test_a_producer_that_fails_ends_the_run_with_its_error_and_what_was_seen():
    kept = list[Record]()
    with pytest.raises(SystemExit, match="the producer has failed: stream cut"):
        play(Stage(a_record(), fails="stream cut"), day(20.0), keep=kept.append)
    assert not kept[-1].complete and kept[-1].samples and kept[-1].exact is None


def test_nobody_who_answers_ends_the_run(monkeypatch):
    monkeypatch.setattr(soak, "SILENCE_SECONDS", -1.0)
    kept = list[Record]()
    with pytest.raises(SystemExit, match="nobody has answered"):
        play(Stage(a_record(), silent=True), day(20.0), keep=kept.append)
    assert len(kept) == 1


def test_the_day_goes_up_and_down_and_the_record_can_be_read_again(
    tmp_path, monkeypatch, capsys, as_predicted
):
    rates = day(20.0)
    assert len(rates) == 80
    assert max(rates) > 95 and rates[0] < 15 and rates[-1] < 15
    monkeypatch.setattr("bench.soak.RESULTS", tmp_path)
    soak.keep(as_predicted)
    assert Record.from_json(json.loads((tmp_path / "soak.record.json").read_text())) == as_predicted
    report(as_predicted)
    figures = {one["figure"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert figures["soak.rows_wrong"] == {"figure": "soak.rows_wrong", "value": 0, "unit": "", "goal": 0}
    assert figures["soak.fitted_core_ms_per_row"]["value"] == pytest.approx(21, rel=0.05)
    assert figures["soak.failed_tasks"]["value"] == 6
    assert (tmp_path / "soak.svg").read_text().startswith("<svg")
    assert "planning_seconds" in (tmp_path / "soak.constants.txt").read_text()


def test_rows_are_made_at_one_rate_after_the_other():
    """By the tool that runs in the cluster."""
    asked = argparse.Namespace(rates="2,4.5,0,1", step=10.0, count=0, rate=1.0)
    due = list(_moments(asked))
    assert len(due) == 75
    assert due == sorted(due)
    by_step = [sum(10 * step <= at < 10 * (step + 1) for at in due) for step in range(4)]
    assert by_step == [20, 45, 0, 10]
    assert list(_moments(argparse.Namespace(rates="", count=3, rate=2.0))) == [0.0, 0.5, 1.0]
