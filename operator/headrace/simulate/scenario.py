"""A trace made into a job that has to cope with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headrace.core.autoscale import Limits
from headrace.simulate.arrivals import Arrivals
from headrace.simulate.batches import BatchCost, fitted_row_cost
from headrace.simulate.faults import Fault
from headrace.simulate.parameters import DEFAULT, Parameters
from headrace.simulate.run import Result, Simulation
from headrace.simulate.scaler import HeadraceScaler, Scaler
from headrace.simulate.traces import Trace


@dataclass(frozen=True, kw_only=True)
class Scenario:
    trace: Trace
    parameters: Parameters = DEFAULT
    faults: tuple[Fault, ...] = ()
    # Core seconds per row; None: so that the trace's peak suits the largest number of executors.
    row_cost: float | None = None
    # Of the partitions, in what arrives; None: by chance.
    shares: tuple[float, ...] | None = None

    @cached_property
    def peak(self) -> float:
        return max(self.trace.peak_minute(), 1e-9)

    @property
    def batch_seconds(self) -> float:
        """Twice this, the age of a row at the end of its batch, leaves a fifth of the objective."""
        return max(0.4 * self.parameters.objective_seconds, self.parameters.trigger_seconds)

    @cached_property
    def core_seconds_per_row(self) -> float:
        if self.row_cost is not None:
            return self.row_cost
        return fitted_row_cost(self.parameters, self.peak, batch_seconds=self.batch_seconds)

    @cached_property
    def sustained(self) -> tuple[float, ...]:
        """What each number of executors really can do, from none up. No scaler but the oracle knows."""
        cost = self.cost(seed=0)
        numbers = range(1, self.parameters.max_executors + 1)
        return (0.0, *(cost.sustained(number, batch_seconds=self.batch_seconds) for number in numbers))

    def cost(self, seed: int) -> BatchCost:
        cost = BatchCost(self.parameters, self.core_seconds_per_row, self.peak, seed)
        if self.shares is not None:
            cost.shares = list(self.shares)
        return cost

    def arrivals(self, seed: int) -> Arrivals:
        return Arrivals(self.trace, self.parameters, seed)

    @property
    def limits(self) -> Limits:
        p = self.parameters
        return Limits(min=p.min_executors, max=p.max_executors, lag_objective_seconds=p.objective_seconds)

    def headrace(self) -> HeadraceScaler:
        return HeadraceScaler(self.parameters, self.limits)

    def play(self, scaler: Scaler, seed: int, *, arrivals: Arrivals | None = None) -> Result:
        return Simulation(
            arrivals or self.arrivals(seed),
            self.cost(seed),
            scaler,
            self.parameters,
            seed=seed,
            faults=self.faults,
        ).run()


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
