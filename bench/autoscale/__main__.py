"""The autoscaler against its peers, on traces of real load, in simulated time.

The simulated job is in `headrace.simulate`; its parameters were fixed before the policy was tuned. The policy
was tuned on made-up traces; docs/concepts/autoscaling.md says how far. Cost is executor time, as a multiple
of that of an oracle that knows the future.

    autoscale.median_cost_over_oracle       over all traces
    autoscale.worst_cost_over_oracle
    autoscale.worst_time_over_objective_pct  where the oracle is never late
    autoscale.dominated_traces              on which a peer is cheaper and no later
    autoscale.calmer_peers                  on which a peer that keeps the objective acts less often, and is
                                            cheaper than every fixed number that keeps it
    autoscale.calmer_peers_at_any_cost      the same without the second half; has no goal
    autoscale.data_loss_events              with all faults

and each for every trace and scaler. The tables are on the error output; all of it, with the pictures, is in
bench/results/.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from bench.autoscale.contest import ORACLE, OURS, STATIC, Entry, Spread, calmer, contest, dominating
from bench.autoscale.loads import made_up_traces, traces_of
from bench.autoscale.mishaps import MISHAPS
from bench.autoscale.odd import odd_traces
from bench.autoscale.pareto import pareto_picture

from headrace.simulate.picture import picture
from headrace.simulate.scenario import Scenario
from headrace.simulate.svg import svg_text
from headrace.simulate.table import table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
GOALS = {
    "median_cost_over_oracle": 1.20,
    "worst_cost_over_oracle": 1.40,
    "worst_time_over_objective_pct": 0.5,
    "dominated_traces": 0,
    "calmer_peers": 0,
    "data_loss_events": 0,
}
# An oracle that is late for less than this is never late.
NEVER_LATE_PCT = 0.05
IN_MISHAPS = (OURS, "keda-tuned", "hpa-cpu-tuned", "flink-live", STATIC)


class Report:
    """Figures go out as they are found; all of it is kept."""

    def __init__(self) -> None:
        self.figures: list[str] = []
        self.text: list[str] = []

    def figure(self, name: str, value: float, unit: str, goal: float | None = None) -> None:
        found = {"figure": f"autoscale.{name}", "value": round(value, 3), "unit": unit, "goal": goal}
        self.figures.append(json.dumps(found))
        print(self.figures[-1], flush=True)

    def say(self, text: str) -> None:
        self.text.append(text)
        print(text, file=sys.stderr, flush=True)

    def keep(self) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "autoscale.json").write_text("".join(line + "\n" for line in self.figures))
        (RESULTS / "autoscale.txt").write_text("\n".join(self.text) + "\n")


def main() -> None:
    arguments = _arguments()
    directory = arguments.traces if arguments.traces is not None else ROOT.parent / "shared/traces"
    if arguments.odd:
        traces = odd_traces(range(1, 3))
    else:
        traces = traces_of(directory if directory.is_dir() else None, arguments.trace)
    report, seeds = Report(), list(range(1, arguments.seeds + 1))
    if not traces:
        report.say(f"No traces in {directory}: made-up ones instead. The policy was tuned on them.\n")
        traces = made_up_traces()
    pictures = RESULTS / "autoscale"
    pictures.mkdir(parents=True, exist_ok=True)
    contests: dict[str, dict[str, Entry]] = {}
    for trace in traces:
        scenario = Scenario(trace=trace)
        entries = contests[trace.name] = contest(scenario, seeds)
        _tell(report, trace.name, scenario, entries)
        shown = [entries[name].results[0] for name in (OURS, "keda-tuned", ORACLE)]
        title = f"{trace.name}: one run of {len(seeds)}"
        (pictures / f"{trace.name}.svg").write_text(svg_text(picture(title, scenario, shown)))
    (pictures / "pareto.svg").write_text(pareto_picture(contests))
    losses = 0 if arguments.no_faults else _mishaps(report, seeds[:2])
    _headline(report, contests, losses)
    report.keep()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, help="a directory of CSV files; default: ../shared/traces")
    parser.add_argument("--trace", type=Path, action="append", default=[], help="one more file")
    parser.add_argument("--odd", action="store_true", help="the loads of bench/autoscale/odd.py instead")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-faults", action="store_true")
    return parser.parse_args()


def _tell(report: Report, name: str, scenario: Scenario, entries: dict[str, Entry]) -> None:
    hours = scenario.trace.length_seconds / 3600
    report.say(f"\n{name}: {hours:.3g} h, objective {scenario.parameters.objective_seconds:g} s")
    report.say(_table(entries))
    if beaten := dominating(entries):
        report.say(f"dominated by {', '.join(beaten)}")
    if quieter := calmer(entries, at_any_cost=True):
        follows = ", ".join(calmer(entries)) or "none"
        report.say(f"within the objective with fewer actions: {', '.join(quieter)}")
        report.say(f"of these, cheaper than a fixed number that keeps it: {follows}")
    for scaler, one in entries.items():
        report.figure(f"cost_over_oracle.{name}.{scaler}", one.cost_over_oracle.mean, "ratio")
        report.figure(f"time_over_objective_pct.{name}.{scaler}", one.over_objective_pct.mean, "%")
        report.figure(f"actions_per_hour.{name}.{scaler}", one.actions_per_hour.mean, "1/h")
        report.figure(f"data_loss_events.{name}.{scaler}", one.data_loss_events, "events")


def _table(entries: dict[str, Entry], *, recovery: bool = False) -> str:
    header = [
        "",
        "cost / oracle",
        "executor hours",
        "over objective %",
        "p99 lag s",
        "actions/h",
        "data losses",
    ]
    rows = [
        [
            name,
            _spread(one.cost_over_oracle, 2),
            _spread(one.executor_hours, 1),
            _spread(one.over_objective_pct, 2),
            _spread(one.lag_p99_seconds, 0),
            _spread(one.actions_per_hour, 1),
            str(one.data_loss_events),
            *([f"{one.recovery_seconds:.0f}"] if recovery and one.recovery_seconds is not None else []),
        ]
        for name, one in entries.items()
    ]
    return table([*header, *(["late after the fault s"] if recovery else [])], rows)


def _spread(value: Spread, digits: int) -> str:
    return f"{value.mean:.{digits}f} ±{value.half_width:.{digits}f}"


def _mishaps(report: Report, seeds: list[int]) -> int:
    losses = 0
    for mishap in MISHAPS:
        entries = contest(mishap.scenario(), seeds, only=IN_MISHAPS)
        report.say(f"\nFault: {mishap.name}")
        report.say(_table(entries, recovery=True))
        losses += entries[OURS].data_loss_events
        key = mishap.name.replace(" ", "-").replace(",", "")
        for scaler, one in entries.items():
            report.figure(f"fault_time_over_objective_pct.{key}.{scaler}", one.over_objective_pct.mean, "%")
            report.figure(f"fault_cost_over_oracle.{key}.{scaler}", one.cost_over_oracle.mean, "ratio")
    return losses


def _headline(report: Report, contests: dict[str, dict[str, Entry]], losses: int) -> None:
    costs = [entries[OURS].cost_over_oracle.mean for entries in contests.values()]
    late = [
        entries[OURS].over_objective_pct.mean
        for entries in contests.values()
        if entries[ORACLE].over_objective_pct.mean <= NEVER_LATE_PCT
    ]
    found = {
        "median_cost_over_oracle": (statistics.median(costs), "ratio"),
        "worst_cost_over_oracle": (max(costs), "ratio"),
        "worst_time_over_objective_pct": (max(late, default=0.0), "%"),
        "dominated_traces": (sum(bool(dominating(entries)) for entries in contests.values()), "traces"),
        "calmer_peers": (sum(bool(calmer(entries)) for entries in contests.values()), "traces"),
        "calmer_peers_at_any_cost": (
            sum(bool(calmer(entries, at_any_cost=True)) for entries in contests.values()),
            "traces",
        ),
        "data_loss_events": (
            losses + sum(entries[OURS].data_loss_events for entries in contests.values()),
            "events",
        ),
    }
    report.say("")
    for name, (value, unit) in found.items():
        goal = GOALS.get(name)
        report.figure(name, value, unit, goal)
        judged = "no goal" if goal is None else f"goal {goal:g}: {'met' if value <= goal else 'MISSED'}"
        report.say(f"{name:32} {value:8.3f} {unit:7} {judged}")


if __name__ == "__main__":
    main()
