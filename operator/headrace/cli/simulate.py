"""`headrace simulate`: what the autoscaler would do with a load: a table, the decisions, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.core.autoscale import Decision
from headrace.core.autoscale.words import duration, rate
from headrace.simulate.drawing import Drawing
from headrace.simulate.job import Job, as_job
from headrace.simulate.parameters import DEFAULT
from headrace.simulate.picture import picture
from headrace.simulate.run import Result
from headrace.simulate.scaler import Fixed
from headrace.simulate.scenario import Scenario
from headrace.simulate.table import table
from headrace.simulate.traces import Trace

LINES_OF_LOG = 12


@dataclass(frozen=True, kw_only=True)
class Options:
    trace: Trace
    max_executors: int
    min_executors: int
    objective_seconds: float
    partitions: int
    cores: int
    # Rows per second that one executor can do; None: so that the peak takes 70 % of `max_executors`.
    per_executor: float | None
    seed: int
    job: Job | None = None


@dataclass(frozen=True)
class Simulated:
    text: str
    picture: Drawing


def simulate(options: Options) -> Simulated:
    scenario = scenario_of(options)
    scaler = scenario.headrace()
    ours = scenario.play(scaler, options.seed)
    peak = _static(scenario, _for_peak(scenario)).play(
        Fixed(_for_peak(scenario), "static at peak"), options.seed
    )
    hours = options.trace.length_seconds / 3600
    about = (
        f"{hours:.3g} h, peak {rate(scenario.peak)}; objective {options.objective_seconds:g} s, "
        f"{options.min_executors} to {options.max_executors} executors; "
        f"a batch every {scenario.parameters.trigger_seconds:g} s; "
        f"1 executor manages {rate(scenario.sustained[1])} here"
    )
    moves = [one for one in scaler.decisions if one.moves]
    notes = _notes(options, scenario)
    parts = [f"{options.trace.name}: {about}", *notes, "", _table([ours, peak]), "", _log(moves, ours)]
    return Simulated(
        text="\n".join(parts),
        picture=picture(f"headrace simulate: {options.trace.name}", scenario, [ours, peak], subtitle=about),
    )


def _static(scenario: Scenario, executors: int) -> Scenario:
    """It has its number from the beginning: to go there is no action of its own."""
    return replace(
        scenario,
        row_cost=scenario.core_seconds_per_row,
        parameters=replace(scenario.parameters, initial_executors=executors),
    )


def _notes(options: Options, scenario: Scenario) -> list[str]:
    """What the table alone would let somebody misread."""
    notes, trigger = list[str](), scenario.parameters.trigger_seconds
    if options.objective_seconds <= trigger:
        notes.append(
            f"A row waits up to {duration(trigger)} for its batch to begin: no number of executors keeps an "
            f"objective of {duration(options.objective_seconds)} all the time."
        )
    asked, got = options.per_executor, scenario.sustained[1]
    if asked is not None and abs(got - asked) > 0.05 * asked:
        notes.append(
            f"{rate(asked)} per executor cannot be simulated with this load, whose batches have a fixed part "
            f"and whose sink takes {DEFAULT.sink_of_peak:g} times the peak: {rate(got)} it is."
        )
    return notes


def scenario_of(options: Options) -> Scenario:
    parameters = replace(
        DEFAULT,
        min_executors=options.min_executors,
        max_executors=options.max_executors,
        initial_executors=max(options.min_executors, options.max_executors // 2),
        objective_seconds=options.objective_seconds,
        partitions=options.partitions,
        cores=options.cores,
    )
    if options.job is not None:
        parameters = as_job(parameters, options.job)
    scenario = Scenario(trace=options.trace, parameters=parameters)
    if options.per_executor is None:
        return scenario
    return replace(scenario, row_cost=_cost_for(scenario, options.per_executor))


def _cost_for(scenario: Scenario, per_executor: float) -> float:
    """The cost of a row with which one executor does as many as it should; found by halving."""
    low, high = 1e-9, 10.0
    for _ in range(30):
        middle = (low * high) ** 0.5
        cost = replace(scenario, row_cost=middle).cost(seed=0)
        if cost.sustained(1, batch_seconds=scenario.batch_seconds) >= per_executor:
            low = middle
        else:
            high = middle
    return low


def _for_peak(scenario: Scenario) -> int:
    enough = (number for number, can in enumerate(scenario.sustained) if can >= 1.05 * scenario.peak)
    return max(next(enough, scenario.parameters.max_executors), scenario.parameters.min_executors)


def _table(results: Sequence[Result]) -> str:
    header = ["", "executor hours", "over objective %", "lag p50 s", "lag p99 s", "lag max s", "actions/h"]
    rows = [
        [
            one.scaler,
            f"{one.executor_hours:.1f}",
            f"{one.over_objective_pct:.2f}",
            f"{one.lag_p50_seconds:.0f}",
            f"{one.lag_p99_seconds:.0f}",
            f"{one.lag_max_seconds:.0f}",
            f"{one.actions_per_hour:.1f}",
        ]
        for one in results
    ]
    return table(header, rows)


def _log(moves: Sequence[Decision], ours: Result) -> str:
    lines = [f"{_clock(one.at)}  {one.message}" for one in moves[:LINES_OF_LOG]]
    more = len(moves) - len(lines)
    lines += [f"… and {more} more"] if more > 0 else []
    lost = f"\nThe source deleted unread rows {ours.data_loss_events} times." if ours.data_loss_events else ""
    return "\n".join(lines or ["The number of executors never changed."]) + lost


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 3600:3}:{int(seconds) % 3600 // 60:02}:{int(seconds) % 60:02}"
