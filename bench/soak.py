"""A compressed day on the cluster beside what the simulator says of it: `python -m bench.soak`, 25 minutes.

A job whose rows take their cores 20 ms each, and next to no CPU, reads a topic that fills in the shape of a
day. The autoscaler rules it from one executor to three. The record is written to bench/results/ every minute,
and compared before anything is taken down. Prints one JSON line per figure, and which constants of the
simulator to set to what. `--replay RECORD` compares again, without a cluster.

    soak.batch_error_pct                   how long batches take, for the number of executors that is worst
    soak.executor_hours_error_pct          the simulator's cost against the cluster's, with fitted parameters
    soak.executors_off                     how many executors it is off, on average over time
    soak.lag_p50_error_s, lag_p95_error_s  and how late the job is
    soak.over_objective_error_pct          and for which part of the time too late
    soak.default_…                         the same with the parameters as they stand in the file
    soak.fitted_…                          what was fitted
    soak.rows_wrong, soak.drivers, soak.failed_tasks, …     what the cluster itself showed
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.soak_compare import (
    Constant,
    Errors,
    errors,
    platform_constants,
    predicted,
    real_result,
    scenario,
    table_of_constants,
)
from bench.soak_fit import Fit, fit
from bench.soak_record import Batch, Commit, Record

from headrace.simulate.parameters import DEFAULT
from headrace.simulate.picture import picture
from headrace.simulate.svg import svg_text

if TYPE_CHECKING:
    from bench.soak_stage import Stage

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
GOALS = {
    "batch_error_pct": 10.0,
    "executor_hours_error_pct": 15.0,
    "executors_off": 0.5,
    "lag_p50_error_s": 5.0,
    "lag_p95_error_s": 15.0,
    "over_objective_error_pct": 5.0,
    "rows_wrong": 0,
    "drivers": 1,
}
LOOK_SECONDS, KEEP_SECONDS = 10.0, 60.0
# Without an answer for so long, nothing is worth waiting for.
SILENCE_SECONDS = 300.0
MINUTES, STEP_SECONDS = 20.0, 15.0
# Two executors cannot manage the peak, three can with room to spare: at the limit, chance decides the lag.
PEAK, LEAST = 100.0, 12.0
MAX, CORES, PARTITIONS, SHUFFLE, TRIGGER, OBJECTIVE = 3, 1, 6, 2, 5.0, 60.0
# The job sleeps so long for each row, in the stage that reads.
SECONDS_PER_ROW, READ_PART = 0.02, 1.0


def main() -> None:
    arguments = _arguments()
    if arguments.replay is not None:
        report(Record.from_json(json.loads(arguments.replay.read_text())))
    else:
        soak(day(arguments.minutes))


def day(minutes: float) -> tuple[float, ...]:
    """Night, morning, a peak in the afternoon, night."""
    steps = round(minutes * 60 / STEP_SECONDS)
    wave = (0.5 - 0.5 * math.cos(2 * math.pi * (index + 0.5) / steps) for index in range(steps))
    return tuple(round(LEAST + (PEAK - LEAST) * height**1.5, 2) for height in wave)


def report(record: Record) -> None:
    real, fitted = real_result(record), fit(record)
    before, after = (scenario(record, one) for one in (None, fitted))
    as_it_stands, with_fit = predicted(record, None), predicted(record, fitted)
    lines = [
        *_of_errors(errors(record, after, with_fit), ""),
        *_of_errors(errors(record, before, as_it_stands), "default_"),
        *_of_fit(fitted),
        ("executor_hours", real.executor_hours, "h"),
        ("over_objective_pct", real.over_objective_pct, "%"),
        ("lag_p50_s", real.lag_p50_seconds, "s"),
        ("lag_max_s", real.lag_max_seconds, "s"),
        *_of_cluster(record),
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
    about = (
        f"{real.hours * 60:.0f} min on the cluster, and the simulator with the parameters that it gave; "
        f"{fitted.batches} batches"
    )
    shown = [
        real,
        replace(with_fit[0], scaler="simulator, fitted"),
        replace(as_it_stands[0], scaler="simulator, as it stands"),
    ]
    (RESULTS / "soak.svg").write_text(svg_text(picture("A compressed day", after, shown, subtitle=about)))
    table = table_of_constants(constants(record))
    (RESULTS / "soak.constants.txt").write_text(table + "\n")
    sys.stderr.write("\n".join([*record.decisions, table, ""]))


def constants(record: Record) -> list[Constant]:
    """What the record says of the constants in the simulator's file."""
    job = replace(DEFAULT, partitions=record.partitions, shuffle_partitions=record.shuffle_partitions)
    return platform_constants(job, fit(record))


def _of_errors(found: Errors, prefix: str) -> list[tuple[str, float, str]]:
    return [
        (f"{prefix}batch_error_pct", found.batch_pct, "%"),
        (f"{prefix}executor_hours_error_pct", found.executor_hours_pct, "%"),
        (f"{prefix}executors_off", found.executors, "executors"),
        (f"{prefix}lag_p50_error_s", found.lag_p50_seconds, "s"),
        (f"{prefix}lag_p95_error_s", found.lag_p95_seconds, "s"),
        (f"{prefix}lag_max_error_s", found.lag_max_seconds, "s"),
        (f"{prefix}over_objective_error_pct", found.over_objective_points, "points"),
    ]


def _of_fit(fitted: Fit) -> list[tuple[str, float, str]]:
    found = [
        ("fitted_fixed_s", fitted.fixed_seconds, "s"),
        ("fitted_core_ms_per_row", 1000 * fitted.core_seconds_per_row, "ms"),
        ("fitted_contention", fitted.contention, ""),
        ("fitted_batch_error_pct", 100 * fitted.median_error, "%"),
    ]
    measured = {
        "fitted_startup_s": fitted.startup_median_seconds,
        "fitted_commit_s": fitted.commit_median_seconds,
        "fitted_warm_up_slowdown": fitted.warm_up_slowdown,
        "fitted_reload_s": fitted.reload_seconds,
    }
    unit = {"fitted_warm_up_slowdown": "ratio"}
    return [
        *found,
        *((name, one.value, unit.get(name, "s")) for name, one in measured.items() if one.value is not None),
    ]


def _of_cluster(record: Record) -> list[tuple[str, float, str]]:
    """What nobody has looked at has no figure."""
    found: list[tuple[str, float, str]] = []
    if record.exact is not None:
        found.append(("rows_wrong", 0 if record.exact else 1, ""))
    if record.same_driver is not None:
        found.append(("drivers", 1 if record.same_driver else 2, ""))
    if record.executors:
        found.append(("failed_tasks", sum(one.failed_tasks for one in record.executors), "tasks"))
    return found


# ---- on the cluster -----------------------------------------------------------------------------------


def soak(rates: tuple[float, ...]) -> None:
    """The same cluster, services and installation as the tests from end to end have."""
    from bench.soak_stage import stage

    with (
        tempfile.TemporaryDirectory() as scratch,
        stage(
            Path(scratch),
            max_executors=MAX,
            cores=CORES,
            partitions=PARTITIONS,
            shuffle_partitions=SHUFFLE,
            trigger=f"{TRIGGER:g}s",
            objective=f"{OBJECTIVE:g}s",
            seconds_per_row=SECONDS_PER_ROW,
        ) as there,
    ):
        play(there, rates, keep=keep)


def keep(record: Record) -> None:
    """Whole or not at all: somebody may stop us at any time."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    unfinished = RESULTS / "soak.record.json.new"
    unfinished.write_text(json.dumps(record.to_json()))
    unfinished.replace(RESULTS / "soak.record.json")


class Producer(threading.Thread):
    """Nobody waits for it when all else has failed."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.failure: BaseException | None = None
        self._work = work

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # told by whoever waits for it
            self.failure = error


def play(there: Stage, rates: tuple[float, ...], *, keep: Callable[[Record], None]) -> None:
    """The day from its first row to its last; then what came of it, before anything is taken down."""
    driver = there.driver_uid()
    record = Record(
        rates=rates,
        step_seconds=STEP_SECONDS,
        max_executors=MAX,
        cores=CORES,
        partitions=PARTITIONS,
        shuffle_partitions=SHUFFLE,
        trigger_seconds=TRIGGER,
        objective_seconds=OBJECTIVE,
        seconds_per_row=SECONDS_PER_ROW,
        read_part=READ_PART,
        began=time.time(),
        rows_before=there.rows_produced,
    )
    producer = Producer(lambda: there.produce(rates, STEP_SECONDS))
    producer.start()
    record = _watch(there, producer, record, keep)
    record = replace(record, complete=producer.failure is None)
    keep(record)
    if producer.failure is not None:
        raise SystemExit(f"the producer has failed: {producer.failure}")
    exact, after = there.exact(seconds=600), there.driver_uid()
    record = with_books(there, with_look(there, record)[0])
    same = None if driver is None or after is None else after == driver
    record = replace(record, exact=exact, same_driver=same, decisions=there.decisions() or ())
    keep(record)
    report(record)


def _watch(there: Stage, producer: Producer, record: Record, keep: Callable[[Record], None]) -> Record:
    answered = kept = time.monotonic()
    while producer.is_alive():
        began = time.monotonic()
        record, seen = with_look(there, record)
        if seen:
            answered = began
        elif began - answered > SILENCE_SECONDS:
            keep(record)
            raise SystemExit(f"nobody has answered for {SILENCE_SECONDS:.0f} s; what was seen is kept")
        if began - kept >= KEEP_SECONDS:
            kept, record = began, with_books(there, record)
            keep(record)
        # The pace of the looks: what a look takes comes out of it.
        producer.join(timeout=max(0.0, LOOK_SECONDS - (time.monotonic() - began)))
    return record


def with_look(there: Stage, record: Record) -> tuple[Record, bool]:
    """With what is new, and whether somebody answered."""
    seen = there.look()
    if seen is None:
        return record, False
    sys.stderr.write(f"{seen.sample}\n")
    batches: dict[int, Batch] = {one.number: one for one in (*record.batches, *seen.batches)}
    commits: dict[int, Commit] = {one.batch: one for one in (*record.commits, seen.commit) if one is not None}
    return replace(
        record,
        samples=(*record.samples, seen.sample),
        batches=tuple(batches[number] for number in sorted(batches)),
        moves=record.moves if seen.move is None else tuple(sorted({*record.moves, seen.move})),
        commits=tuple(commits[number] for number in sorted(commits)),
        partition_rows=seen.partition_rows or record.partition_rows,
    ), True


def with_books(there: Stage, record: Record) -> Record:
    return replace(record, executors=there.books() or record.executors)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long the day takes")
    parser.add_argument("--replay", type=Path, help="a record of an earlier run: compare again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
