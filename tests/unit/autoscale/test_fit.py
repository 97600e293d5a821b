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
