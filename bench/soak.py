"""A compressed day on the cluster beside what the simulator says of it: `python -m bench.soak`, 25 minutes.

A job whose rows take their cores 20 ms each, and next to no CPU, reads a topic that fills in the shape of a
day. The autoscaler rules it from one executor to three. Prints one JSON line per figure, and writes the
record, the comparison and a picture to bench/results/. `--replay RECORD` compares again, without a cluster.

    soak.executor_hours_error_pct          the simulator's cost against the cluster's, with fitted parameters
    soak.executors_off                     how many executors it is off, on average over time
    soak.lag_p50_error_s, lag_max_error_s  and how late the job is
    soak.default_…                         the same with the parameters as they stand in the file
    soak.fitted_…                          what was fitted
    soak.over_objective_pct, soak.rows_wrong, soak.drivers   what the cluster itself showed
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.soak_compare import Errors, Fit, Record, Sample, errors, fit, predicted, real_result, scenario

from headrace.simulate.picture import picture
from headrace.simulate.run import Result

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
GOALS = {"executor_hours_error_pct": 20.0, "executors_off": 0.5, "rows_wrong": 0, "drivers": 1}
LOOK_SECONDS = 10.0
MINUTES, STEP_SECONDS = 20.0, 15.0
PEAK, LEAST = 105.0, 12.0
MAX, CORES, PARTITIONS, SHUFFLE, TRIGGER, OBJECTIVE = 3, 1, 6, 2, 5.0, 60.0
SECONDS_PER_ROW = 0.02


def main() -> None:
    arguments = _arguments()
    if arguments.replay is not None:
        record = Record.from_json(json.loads(arguments.replay.read_text()))
    else:
        record = soak(day(arguments.minutes))
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "soak.record.json").write_text(json.dumps(record.to_json()))
    report(record)


def day(minutes: float) -> tuple[float, ...]:
    """Night, morning, a peak in the afternoon, night."""
    steps = round(minutes * 60 / STEP_SECONDS)
    wave = (0.5 - 0.5 * math.cos(2 * math.pi * (index + 0.5) / steps) for index in range(steps))
    return tuple(round(LEAST + (PEAK - LEAST) * height**1.5, 2) for height in wave)


def report(record: Record) -> None:
    real, fitted = real_result(record), fit(record)
    as_it_stands, with_fit = predicted(record, None), predicted(record, fitted)
    before, after = errors(real, as_it_stands), errors(real, with_fit)
    lines = [
        *_of_errors(after, ""),
        *_of_errors(before, "default_"),
        *_of_fit(fitted),
        ("executor_hours", real.executor_hours, "h"),
        ("over_objective_pct", real.over_objective_pct, "%"),
        ("lag_p50_s", real.lag_p50_seconds, "s"),
        ("lag_max_s", real.lag_max_seconds, "s"),
        ("rows_wrong", 0 if record.exact else 1, ""),
        ("drivers", 1 if record.same_driver else 2, ""),
    ]
    figures = [
        json.dumps(
            {"figure": f"soak.{name}", "value": round(value, 3), "unit": unit, "goal": GOALS.get(name)}
        )
        for name, value, unit in lines
    ]
    print("\n".join(figures), flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "soak.json").write_text("".join(line + "\n" for line in figures))
    world = scenario(record, fitted)
    about = (
        f"{real.hours * 60:.0f} min on the cluster, and the simulator with the parameters that it gave; "
        f"{fitted.batches} batches"
    )
    shown = [
        real,
        _named(with_fit[0], "simulator, fitted"),
        _named(as_it_stands[0], "simulator, as it stands"),
    ]
    (RESULTS / "soak.svg").write_text(picture("A compressed day", world, shown, subtitle=about))
    for line in record.decisions:
        sys.stderr.write(f"{line}\n")


def _of_errors(found: Errors, prefix: str) -> list[tuple[str, float, str]]:
    return [
        (f"{prefix}executor_hours_error_pct", found.executor_hours_pct, "%"),
        (f"{prefix}executors_off", found.executors, "executors"),
        (f"{prefix}lag_p50_error_s", found.lag_p50_seconds, "s"),
        (f"{prefix}lag_max_error_s", found.lag_max_seconds, "s"),
    ]


def _of_fit(fitted: Fit) -> list[tuple[str, float, str]]:
    found = [
        ("fitted_fixed_s", fitted.fixed_seconds, "s"),
        ("fitted_core_ms_per_row", 1000 * fitted.core_seconds_per_row, "ms"),
        ("fitted_batch_error_pct", 100 * fitted.median_error, "%"),
    ]
    if fitted.startup_median_seconds is not None:
        found.append(("fitted_startup_s", fitted.startup_median_seconds, "s"))
    return found


def _named(result: Result, name: str) -> Result:
    return replace(result, scaler=name)


# ---- on the cluster -----------------------------------------------------------------------------------


def soak(rates: tuple[float, ...]) -> Record:
    """The same cluster, services and installation as the tests from end to end have."""
    from bench.soak_stage import Stage, stage

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        there: Stage = stack.enter_context(
            stage(
                scratch,
                max_executors=MAX,
                cores=CORES,
                partitions=PARTITIONS,
                trigger=f"{TRIGGER:g}s",
                objective=f"{OBJECTIVE:g}s",
                seconds_per_row=SECONDS_PER_ROW,
            )
        )
        return _play(there, rates)


def _play(there: Any, rates: tuple[float, ...]) -> Record:
    driver = there.driver_uid()
    producer = threading.Thread(target=there.produce, args=(rates, STEP_SECONDS))
    producer.start()
    began, samples, batches = time.monotonic(), list[Sample](), dict[int, tuple[int, float, int, int]]()
    while producer.is_alive():
        at = time.monotonic() - began
        if (seen := there.sample(at)) is not None:
            samples.append(seen)
            sys.stderr.write(f"{seen}\n")
        if len(samples) % 6 == 0:
            batches |= {one[0]: one for one in there.batches()}
        # The pace of the looks: what a sample takes comes out of it.
        producer.join(timeout=max(0.0, LOOK_SECONDS - (time.monotonic() - began - at)))
    exact = there.wait_exact()
    batches |= {one[0]: one for one in there.batches()}
    return Record(
        rates=rates,
        step_seconds=STEP_SECONDS,
        max_executors=MAX,
        cores=CORES,
        partitions=PARTITIONS,
        shuffle_partitions=SHUFFLE,
        trigger_seconds=TRIGGER,
        objective_seconds=OBJECTIVE,
        seconds_per_row=SECONDS_PER_ROW,
        samples=tuple(samples),
        batches=tuple(batches[number] for number in sorted(batches)),
        exact=exact,
        same_driver=there.driver_uid() == driver,
        decisions=there.decisions(),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long the day takes")
    parser.add_argument("--replay", type=Path, help="a record of an earlier run: compare again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
