"""When a model of batches is believed."""

import pytest

from headrace.core.autoscale.cost import Fit, Stages
from headrace.core.autoscale.observation import Batch

STAGES = Stages(cores=2, source_tasks=24, shuffle_tasks=None, hottest_share=0.0)


def learned(*batches: tuple[float, int]) -> Fit:
    """(seconds, rows) of each."""
    told = [
        Batch(number=number, seconds=seconds, rows=rows, executors=2)
        for number, (seconds, rows) in enumerate(batches)
    ]
    return Fit().learn(told, STAGES, 10.0)


@pytest.mark.parametrize(
    ("batches", "ready"),
    [
        ([(2.0, 1000)] * 7, False),
        ([(2.0, 1000)] * 8, True),
        # A job that begins with a backlog: few batches, and each of them tells much.
        ([(90.0, 50_000), (70.0, 40_000)], False),
        ([(90.0, 50_000), (70.0, 40_000), (60.0, 35_000)], True),
        ([(10.0, 5000)] * 3, False),
    ],
)
def test_a_model_takes_eight_batches_or_three_long_ones(batches, ready):
    assert learned(*batches).ready == ready


def test_of_long_batches_the_cost_of_a_row_is_found():
    fit = learned((91.0, 45_000), (71.0, 35_000), (61.0, 30_000))
    capacity = fit.capacity(STAGES, 2, batch_seconds=15.0)
    assert 350 < capacity < 550, "2 ms a row, and about a second for each batch"


def after_a_quiet_night(night: tuple[float, int]) -> Fit:
    """A day of large batches, 2 ms a row on two executors; then four hours of tiny ones."""
    day = [(1.0 + rows * 0.002, rows) for rows in (2000, 4000, 3000, 5000) * 10]
    return learned(*day, *([night] * 1500))


@pytest.mark.parametrize("seconds", [0.4, 1.0, 1.3])
def test_what_a_row_costs_outlives_a_quiet_night(seconds):
    by_day = after_a_quiet_night((9.0, 4000)).capacity(STAGES, 2, batch_seconds=15.0)
    by_night = after_a_quiet_night((seconds, 3)).capacity(STAGES, 2, batch_seconds=15.0)
    assert by_night < 2 * by_day, "no endless capacity"


def test_who_only_ever_had_tiny_batches_does_not_believe_in_endless_capacity():
    fit = learned(*[(4.0 + 0.01 * (number % 5), 25) for number in range(500)])
    assert fit.ready
    # At most ten times what a batch showed: 6 rows/s.
    assert fit.capacity(STAGES, 2, batch_seconds=15.0) < 65


def test_a_job_that_became_slow_in_the_night_is_learned_from_as_soon_as_by_day():
    day = [(1.0 + rows * 0.002, rows) for rows in (2000, 4000, 3000, 5000) * 10]
    slow = [(1.0 + rows * 0.008, rows) for rows in (3000, 4000) * 6]
    at_once = learned(*day, *slow).capacity(STAGES, 2, batch_seconds=15.0)
    after = learned(*day, *([(1.0, 3)] * 500), *slow).capacity(STAGES, 2, batch_seconds=15.0)
    assert after == pytest.approx(at_once, rel=0.1)
    assert at_once < 0.7 * learned(*day).capacity(STAGES, 2, batch_seconds=15.0)
