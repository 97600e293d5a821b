"""What a soak gives: fitted where the truth is known, and a prediction that is judged fairly."""

import argparse
import json
import random

import pytest
from bench.soak import day, report
from bench.soak_compare import Record, Sample, errors, fit, predicted, real_result, startups

from headrace.simulate.run import Result
from tests.e2e.kafka_tool import _moments

FIXED, PER_ROW = 1.6, 0.021


def a_record(**changes: object) -> Record:
    """A day that went as the simulator says, with batches whose cost is known."""
    chance = random.Random(7)
    batches = []
    for number in range(120):
        rows, executors = chance.randrange(20, 600), chance.randrange(1, 4)
        seconds = (FIXED + rows * PER_ROW / executors) * chance.uniform(0.95, 1.05)
        batches.append((number, seconds, rows, executors))
    samples = tuple(
        Sample(at=10.0 * look, rows_per_second=30.0, lag_seconds=6.0, asked=1, ready=1) for look in range(120)
    )
    given = {
        "rates": day(20.0),
        "step_seconds": 15.0,
        "max_executors": 3,
        "cores": 1,
        "partitions": 6,
        "shuffle_partitions": 2,
        "trigger_seconds": 5.0,
        "objective_seconds": 60.0,
        "seconds_per_row": 0.02,
        "samples": samples,
        "batches": tuple(batches),
        "exact": True,
        "same_driver": True,
    }
    return Record(**{**given, **changes})  # type: ignore[arg-type]


def as_samples(result: Result) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            at=one.at,
            rows_per_second=one.rows_per_second,
            lag_seconds=one.lag_seconds,
            asked=one.asked,
            ready=one.ready,
        )
        for one in result.points
    )


def test_the_cost_of_a_batch_is_found():
    found = fit(a_record())
    assert found.fixed_seconds == pytest.approx(FIXED, abs=0.3)
    assert found.core_seconds_per_row == pytest.approx(PER_ROW, rel=0.05)
    assert found.median_error < 0.06


def test_too_few_batches_are_no_fit():
    with pytest.raises(SystemExit, match="only 2 batches"):
        fit(a_record(batches=((0, 1.0, 10, 1), (1, 1.0, 10, 1))))


def test_a_start_lasts_from_the_wish_to_the_last_executor():
    looks = [(0, 1, 1), (10, 3, 1), (20, 3, 2), (40, 3, 3), (50, 1, 3)]
    samples = [
        Sample(at=at, rows_per_second=None, lag_seconds=None, asked=asked, ready=ready)
        for at, asked, ready in looks
    ]
    assert startups(samples) == [40]


def test_a_cluster_that_does_as_predicted_shows_no_error():
    record = a_record()
    guesses = predicted(record, fit(record))
    real = real_result(a_record(samples=as_samples(guesses[0])))
    same, others = errors(real, guesses[:1]), errors(real, guesses[1:])
    assert same.executors == 0.0
    assert same.executor_hours_pct < 10  # pods that leave with the end of a batch cost a little longer
    assert others.executors < 0.6
    assert max(one.asked for one in real.points) == 3


def test_a_cluster_that_does_otherwise_shows():
    record = a_record()
    real = real_result(record)  # one executor, all day
    found = errors(real, predicted(record, fit(record)))
    assert found.executors > 0.3
    assert found.executor_hours_pct > 20


def test_the_day_goes_up_and_down_and_the_record_can_be_read_again(tmp_path, monkeypatch, capsys):
    rates = day(20.0)
    assert len(rates) == 80
    assert max(rates) > 100 and rates[0] < 15 and rates[-1] < 15
    record = a_record()
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
    monkeypatch.setattr("bench.soak.RESULTS", tmp_path)
    report(record)
    figures = {one["figure"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    assert figures["soak.rows_wrong"] == {"figure": "soak.rows_wrong", "value": 0, "unit": "", "goal": 0}
    assert figures["soak.fitted_core_ms_per_row"]["value"] == pytest.approx(21, rel=0.05)
    assert (tmp_path / "soak.svg").read_text().startswith("<svg")


def test_rows_are_made_at_one_rate_after_the_other():
    """By the tool that runs in the cluster."""
    asked = argparse.Namespace(rates="2,4.5,0,1", step=10.0, count=0, rate=1.0)
    due = list(_moments(asked))
    assert len(due) == 75
    assert due == sorted(due)
    by_step = [sum(10 * step <= at < 10 * (step + 1) for at in due) for step in range(4)]
    assert by_step == [20, 45, 0, 10]
    assert list(_moments(argparse.Namespace(rates="", count=3, rate=2.0))) == [0.0, 0.5, 1.0]
