"""An incumbent that runs, and candidates beside it: real drivers, each a process of its own."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.spark.harness.conftest import DriverProcess, drive, wait_for

__all__ = ["drive"]

HEAD = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
from headrace_jobs import run
place = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("user string, amount long, at timestamp").option("maxFilesPerTrigger", 1) \\
    .json(str(place / "in"))

def keep(frame, batch_id):
    rows = sorted(json.dumps(row.asDict(), default=str) for row in frame.collect())
    with (place / "out.jsonl").open("a") as out:
        told = {"run": run.number, "epoch": run.epoch, "batch": batch_id, "rows": rows}
        out.write(json.dumps(told) + "\\n")
"""
TAIL = """
query = totals.writeStream.queryName("totals").outputMode("update").foreachBatch(keep).start()
query.awaitTermination()
"""
SUM = 'totals = orders.groupBy("user").agg(F.sum("amount").alias("total"))'


def script(*bodies: str, tail: str = TAIL) -> str:
    return "\n".join([HEAD, *map(textwrap.dedent, bodies or (SUM,)), textwrap.dedent(tail)])


def put_orders(place: Path, *numbers: int, bad: str | None = None) -> None:
    """One file each, with the same users: a batch of three rows."""
    (place / "in").mkdir(exist_ok=True)
    for number in numbers:
        rows = [
            {"user": bad or user, "amount": number + 1, "at": f"2026-01-01T00:{number % 60:02}:00Z"}
            for user in ("ann", "bob", "eve")
        ]
        fresh = place / f".{number}.tmp"
        fresh.write_text("\n".join(map(json.dumps, rows)))
        fresh.rename(place / "in" / f"{number:05}.json")


def output(place: Path) -> list[dict[str, Any]]:
    path = place / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Rehearsals:
    """One job: its incumbent is run 1."""

    def __init__(self, place: Path, drive: Any) -> None:
        self.place, self._drive = place, drive
        self.incumbent: DriverProcess | None = None
        self._scripts = 0
        self._tries = 0

    def start(self, text: str, **changes: Any) -> DriverProcess:
        self._scripts += 1
        file = self.place / f"job{self._scripts}.py"
        file.write_text(text)
        return self._drive(None, application={"file": str(file)}, **changes)

    def start_incumbent(self, text: str | None = None, *, batches: int = 6, **changes: Any) -> DriverProcess:
        put_orders(self.place, *range(batches))
        self.incumbent = self.start(text or script(), **changes)
        self.incumbent.wait_for_batch("totals", batches - 1)
        self.incumbent.wait_for_file(self.incumbent.run / "_plans" / "totals.json")
        return self.incumbent

    def start_candidate(self, text: str, *, run: int = 2, **changes: Any) -> DriverProcess:
        self._tries += 1
        terms = {
            "fromRun": 1,
            "batches": 3,
            "timeLimitSeconds": 90,
            "callForeachBatch": False,
            "stateCompatible": False,
            "standbySeconds": None,
        } | changes.pop("rehearsal", {})
        return self.start(
            text, attempt=self._tries, run=run, epoch=0, mode="rehearse", rehearsal=terms, **changes
        )

    def rehearse(self, text: str, **changes: Any) -> dict[str, Any]:
        """A candidate to its end; what it said at last, with its log."""
        candidate = self.start_candidate(text, **changes)
        end = candidate.end()
        return end | {"log": candidate.log()}

    def assert_untouched(self) -> None:
        """The incumbent runs on, and takes the next batch; the fork is gone."""
        incumbent = self.incumbent
        assert incumbent is not None
        before = incumbent.commits("totals")[-1]
        put_orders(self.place, before + 1)
        incumbent.wait_for_batch("totals", before + 1)
        assert {line["run"] for line in output(self.place)} == {1}
        assert [line["batch"] for line in output(self.place)] == list(range(before + 2))
        assert not list((incumbent.store).glob("rehearsal-*/queries"))
        assert not (incumbent.store / "run-2" / "_attempts").exists()


@pytest.fixture
def rehearsals(tmp_path, drive):
    return Rehearsals(tmp_path, drive)


def in_phase(driver: DriverProcess, phase: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        assert driver.process.poll() is None, driver.log()
        status = driver.status()
        return status if status["phase"] == phase else None

    return wait_for(reached, f"never {phase}")
