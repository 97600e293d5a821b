"""The peers of the benchmark follow their own projects' rules: the vectors are those of their own tests."""

import math
from collections.abc import Iterable

import pytest
from bench.autoscale.flink import align, new_parallelism, target_capacity, thresholds
from bench.autoscale.hpa import CpuHpa, Keda
from bench.autoscale.oracle import Foresight, Oracle

from headrace.core.lag import Offsets
from headrace.simulate.parameters import DEFAULT
from headrace.simulate.scaler import View
from headrace.simulate.scenario import Scenario
from headrace.simulate.traces import Trace


@pytest.mark.parametrize(
    ("lag_rate", "catch_up", "restart", "backlog", "then"),
    [
        (0, 0, 1, False, (778, 1000)),
        (350, 2, 1, False, (1128, 1700)),
        (0, 2, 1, False, (778, 1350)),
        (350, 2, 1, True, (1050, math.inf)),
        (0, 2, 1, True, (700, math.inf)),
        (0, 0, 300, False, (778, 1000)),
        (350, 60, 300, False, (1128, 4850)),
        (0, 60, 300, False, (778, 4500)),
        (350, 60, 300, True, (1050, math.inf)),
        (0, 60, 300, True, (700, math.inf)),
    ],
)
def test_flink_utilisation_boundaries(lag_rate, catch_up, restart, backlog, then):
    found = thresholds(
        700, lag_rate=lag_rate, catch_up=catch_up, restart=restart, highest=0.9, lowest=0.7, backlog=backlog
    )
    assert found == then


@pytest.mark.parametrize(
    ("present", "load", "limits", "then"),
    [
        (10, (50, 100, 1.0), {}, 5),
        (10, (50, 100, 0.8), {}, 8),
        (10, (80, 100, 0.8), {}, 10),
        (10, (60, 100, 0.8), {}, 8),
        (10, (59, 100, 0.8), {}, 8),
        (2, (100, 40, 0.5), {}, 10),
        (2, (100, 100, 0.6), {}, 4),
        (10, (10, 100, 1.0), {"max_down": 0.5}, 5),
        (10, (10, 100, 1.0), {"max_down": 0.6}, 4),
        (10, (200, 10, 1.0), {"max_up": 0.5}, 15),
        (10, (200, 10, 1.0), {"max_up": 0.6}, 16),
    ],
)
def test_flink_parallelism(present, load, limits, then):
    rate, true_rate, utilisation = load
    capacity = target_capacity(rate, utilisation=utilisation, catch_up=0)
    found = new_parallelism(present, capacity, true_rate, **{"max_down": 1.0, "max_up": 2.0**31, **limits})
    assert (found if found == present else align(720, present, found, balanced=False)) == then


def test_flink_scales_for_backlog():
    capacity = target_capacity(500, utilisation=0.8, catch_up=2, restart=1, lag_rate=2000 / 2)
    assert new_parallelism(1, capacity, 500 / 0.85, max_down=1.0, max_up=2.0**31) == 4


def a_view(*, at=0.0, asked=4, lag=0.0, cpu=0.0) -> View:
    return View(
        at=at, asked=asked, ready=asked, pending_seconds=0, batches=(), lag_rows=lag, arrived_rows=0.0,
        cpu=cpu, busy=0.0, quiet_seconds=0, idle=True, running_seconds=None, running_rows=None,
        offsets=lambda: Offsets({}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "lag", "then"),
    [
        (4, 70, 7),  # ceil(lag / threshold)
        (4, 43, 4),  # within the tolerance of a tenth
        (4, 10_000, 8),  # twice as many per sync, or four more
        (1, 10_000, 5),
        (12, 10_000, 20),  # no more than max
    ],
)
def test_keda(asked, lag, then):
    assert Keda("keda", DEFAULT, lag_threshold=10).look(a_view(asked=asked, lag=lag)) == then


def test_keda_goes_down_to_the_highest_of_five_minutes():
    keda = Keda("keda", DEFAULT, lag_threshold=10)
    looks = looked(keda, ((0, 80), (15, 10), (300, 10), (315, 10)), asked=8)
    assert looks == [8, 8, 8, 1]


def test_keda_without_a_metric_stays():
    assert Keda("keda", DEFAULT, lag_threshold=10).look(a_view(asked=6, lag=None)) == 6


def test_the_hpa_follows_the_cpu():
    assert CpuHpa("hpa", DEFAULT, target=0.5).look(a_view(asked=4, cpu=0.75)) == 6


def looked(keda: Keda, lags: Iterable[tuple[float, float]], *, asked: int) -> list[int]:
    return [keda.look(a_view(at=at, asked=asked, lag=lag)) for at, lag in lags]


def test_the_oracle_asks_before_the_load_is_there():
    trace = Trace("step", (0.0, 1800.0, 1801.0, 3600.0), (1000.0, 1000.0, 10_000.0, 10_000.0))
    scenario = Scenario(trace=trace)
    oracle = Oracle(scenario, Foresight(1.0, 60, 0, 0.3))
    early, before, after = (oracle.look(a_view(at=at)) for at in (600.0, 1770.0, 1900.0))
    assert early < before == after
    assert scenario.sustained[after] >= 10_000 > scenario.sustained[after - 1]
