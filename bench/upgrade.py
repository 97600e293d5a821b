"""How long a job does not commit while its version changes, on a real cluster with Kafka, S3 and PostgreSQL.

    upgrade.warm_gap_s         from the last batch of the old version in the sink to the first of the new:
    upgrade.cold_gap_s         rehearsed and handed over warm; `strategy: Cold`; the driver deleted and
    upgrade.recreate_gap_s     created again, under plain Spark with its defaults, as without Headrace
    upgrade.recreate_over_warm the last by the first
    upgrade.warm.<part>_s      the warm gap in parts: drain (the old batch ends, the queries end), exit (its
                               container has terminated, the order reaches the candidate), copy (the
                               difference of the state, the claim), activate (the queries start), first_batch
    upgrade.rejected_missed_batches  triggers without a batch while an upgrade was rehearsed and refused
    upgrade.lost_or_repeated   records missing or counted twice after all that, by tests/e2e/ledger_check.py

The three take turns; only one of them runs at a time. The image is on the nodes beforehand. Medians of the
rounds. The job is examples/exactly-once with a trigger of a second: dedup and event-time windows, a producer
that never stops. Timelines of every round: bench/results/upgrade-timelines.json, and on the error output.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.upgrade_cluster import (  # noqa: E402
    CODE,
    WAIT_SECONDS,
    PlainSpark,
    Stage,
    Steady,
    Timeline,
    activation_of,
    followed_log,
    moment_in,
    prepared_stage,
    start_measured,
    wait_stable,
    watch_steps,
)
from tests.cluster.processes import wait_until  # noqa: E402
from tests.e2e.ledger import JOB, UNFIT, Ledger  # noqa: E402

RESULTS = ROOT / "bench/results/upgrade.json"
TIMELINES = ROOT / "bench/results/upgrade-timelines.json"
GOALS = {
    "upgrade.warm_gap_s": "<= 6",
    "upgrade.recreate_over_warm": ">= 6",
    "upgrade.rejected_missed_batches": "<= 0",
    "upgrade.lost_or_repeated": "<= 0",
}
PARTS = ("drain", "exit", "copy", "activate", "first_batch")
# Long enough for a batch beside a candidate that starts on the same two cores.
REJECTED_TRIGGER_SECONDS = 5


class Bench:
    def __init__(self, stage: Stage) -> None:
        self.stage, self.job = stage, stage.job
        self.managed, self.plain_ledger = Ledger(stage.services, "managed"), Ledger(stage.services, "plain")
        self.gaps: dict[str, list[float]] = defaultdict(list)
        self.parts: dict[str, list[float]] = defaultdict(list)
        self.timelines: list[dict[str, Any]] = []
        self._labels = 0
        for ledger in (self.managed, self.plain_ledger):
            ledger.start_producer()
        self.plain = PlainSpark(stage, self.plain_ledger)
        start_measured(stage, self.managed)

    # ---- the three ways

    def warm(self) -> None:
        before, log, timeline, first = self._upgrade("Rehearsed")
        driver = self.job.driver()["metadata"]["name"]
        activation = activation_of(self.job, driver)
        active = moment_in(self._log_of(driver), ": active$")
        ends = moment_in(log, "the driver ends: ")
        if activation is None or active is None or ends is None:
            raise SystemExit(f"the handover was not warm: {self.job.condition('Rehearsed')}\n{log[-2000:]}")
        took = activation["seconds"]
        asked = active - took["copy"] - took["claim"] - took["start"]
        timeline.mark("the old driver ends", ends)
        timeline.mark("the candidate is asked to take over", asked)
        timeline.mark("it has the state", asked + took["copy"])
        timeline.mark("it has claimed the run", asked + took["copy"] + took["claim"])
        timeline.mark("the candidate is active", active)
        parts = (ends - before, asked - ends, took["copy"] + took["claim"], took["start"], first - active)
        for name, seconds in zip(PARTS, parts, strict=True):
            self.parts[name].append(seconds)
        self._keep("warm", before, first, timeline)

    def cold(self) -> None:
        before, log, timeline, first = self._upgrade("Cold")
        if (ends := moment_in(log, "the driver ends: ")) is not None:
            timeline.mark("the old driver ends", ends)
        self._keep("cold", before, first, timeline)

    def recreate(self) -> None:
        steady, timeline = Steady(self.plain_ledger), Timeline()
        self.plain.create()
        epoch = steady.wait(after_epoch=steady.epoch())
        timeline.mark("deleted")
        self.plain.delete()
        timeline.mark("gone")
        self.plain.create()
        timeline.mark("created")
        for event, reached in {
            "the new driver runs": lambda: self.plain.phase() == "Running",
            "its executor runs": lambda: self.plain.executors() > 0,
        }.items():
            if not wait_until(reached, seconds=WAIT_SECONDS, every=0.2):
                raise SystemExit(f"plain Spark: not in time: {event}\n{self.plain.log()}")
            timeline.mark(event)
        steady.wait(after_epoch=epoch, batches=2)
        before, first = steady.gap(epoch)
        self._keep("recreate", before, first, timeline)
        self.plain.delete()

    # ---- a rejected upgrade

    def rejected_missed_batches(self) -> int:
        run = self.job.status()["run"]["number"]
        self.job.edit(
            {"trigger": {"interval": f"{REJECTED_TRIGGER_SECONDS}s"}, "upgrade": {"strategy": "Cold"}}
        )
        run = wait_stable(self.job, after_run=run)
        steady = Steady(self.managed)
        epoch = steady.wait(batches=4)
        self.job.edit({"upgrade": {"strategy": "Rehearsed"}})
        driver, begins = self.job.driver()["metadata"]["uid"], len(self.managed.noted())
        self.job.write_code(CODE, UNFIT)
        self.job.wait_reason("RehearsalFailed", kind="Stalled", seconds=WAIT_SECONDS)
        after = len(self.managed.noted()) + 2
        wait_until(lambda: len(self.managed.noted()) >= after, seconds=60, every=0.5)
        noted = self.managed.noted()[begins - 1 :]
        assert {one.epoch for one in noted} == {epoch}
        assert self.job.driver()["metadata"]["uid"] == driver
        pauses = [after.written_at - before.written_at for before, after in pairwise(noted)]
        explain(f"batches of the incumbent while an upgrade was refused, seconds apart: {rounded(pauses)}")
        self.job.write_code(CODE, JOB)
        # A late batch and the early one after it do not make up for each other.
        return sum(max(0, round(pause / REJECTED_TRIGGER_SECONDS) - 1) for pause in pauses)

    def lost_or_repeated(self) -> int:
        self.managed.stop_producer()
        return self.managed.wait_exact(seconds=WAIT_SECONDS).lost_or_repeated

    # ---- parts of it

    def resume(self) -> None:
        if self.job.manifest()["spec"].get("suspend"):
            epoch = Steady(self.managed).epoch()
            self.job.edit({"suspend": False})
            self.job.wait_ready(seconds=WAIT_SECONDS)
            Steady(self.managed).wait(after_epoch=epoch)

    def suspend(self) -> None:
        self.job.edit({"suspend": True})
        self.job.wait_reason("Suspended", seconds=WAIT_SECONDS)

    def _upgrade(self, strategy: str) -> tuple[float, str, Timeline, float]:
        """The last batch before, the old driver's log, what happened, the first batch after."""
        steady, timeline, job = Steady(self.managed), Timeline(), self.job
        run, epoch = wait_stable(job), steady.wait()
        self._labels += 1
        with followed_log(job, job.driver()["metadata"]["name"]) as log:
            timeline.mark("edited")
            args = self.managed.args("--label", f"{strategy}-{self._labels}")
            job.edit({"application": {"args": args}, "upgrade": {"strategy": strategy}})
            watch_steps(job, timeline, after_run=run)
            steady.wait(after_epoch=epoch, batches=2)
            before, first = steady.gap(epoch)
            return before, log.read_text(), timeline, first

    def _log_of(self, driver: str) -> str:
        return self.job.cluster.kubectl("logs", "-n", self.job.namespace, driver, "-c", "driver")

    def _keep(self, way: str, before: float, first: float, timeline: Timeline) -> None:
        timeline.mark("last batch of the old version", before)
        timeline.mark("first batch of the new version", first)
        self.gaps[way].append(first - before)
        seconds = timeline.since("last batch of the old version")
        told = {"way": way, "load": os.getloadavg()[0], "seconds": seconds}
        self.timelines.append(told)
        explain(json.dumps(told))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=["warm", "cold", "recreate"], default=None)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.stderr.write("bench/upgrade.py starts the native cluster, which needs root: left out\n")
        return
    ways = arguments.ways or ["warm", "cold", "recreate"]
    with prepared_stage() as stage:
        bench = Bench(stage)
        try:
            for _ in range(arguments.rounds):
                measure_round(bench, ways)
            bench.resume()
        finally:
            # Also of a bench that breaks off: what it has seen by then.
            write(TIMELINES, bench.timelines)
            write(RESULTS, figures := gap_figures(bench))
        figures.append(figure("upgrade.rejected_missed_batches", bench.rejected_missed_batches()))
        figures.append(figure("upgrade.lost_or_repeated", bench.lost_or_repeated()))
        write(RESULTS, figures)


def measure_round(bench: Bench, ways: list[str]) -> None:
    managed: dict[str, Callable[[], None]] = {"warm": bench.warm, "cold": bench.cold}
    if any(way in managed for way in ways):
        bench.resume()
        for way in ways:
            managed.get(way, lambda: None)()
    if "recreate" in ways:
        bench.suspend()
        bench.recreate()


def gap_figures(bench: Bench) -> list[dict[str, Any]]:
    medians = {way: statistics.median(gaps) for way, gaps in bench.gaps.items()}
    figures = [figure(f"upgrade.{way}_gap_s", gap, "s") for way, gap in medians.items()]
    if "warm" in medians and "recreate" in medians:
        figures.append(figure("upgrade.recreate_over_warm", medians["recreate"] / medians["warm"], "ratio"))
    parts = {name: statistics.median(seconds) for name, seconds in bench.parts.items()}
    return [*figures, *(figure(f"upgrade.warm.{name}_s", seconds, "s") for name, seconds in parts.items())]


def figure(name: str, value: float, unit: str = "") -> dict[str, Any]:
    found = {"figure": name, "value": round(value, 2), "unit": unit, "goal": GOALS.get(name)}
    print(json.dumps(found), flush=True)
    return found


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


def explain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def rounded(seconds: list[float]) -> list[float]:
    return [round(one, 2) for one in seconds]


if __name__ == "__main__":
    main()
