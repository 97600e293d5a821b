"""Small stateful jobs with an exact expectation each, for tests that stop them in every way.

Input is a directory of JSON files, one file per batch. `build` makes the frame in Spark; `expected` says in
plain Python what its sink must have seen in the end, whatever happened on the way.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id long, key long, amount long, at timestamp"
WINDOW_SECONDS = 10
_FIRST_FILE_AT = 1_700_000_000

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    build: Callable[[SparkSession, str], DataFrame]
    expected: Callable[[list[Row]], dict[str, Any]]
    output: Literal["update", "append"]


def write_input(directory: Path, files: int, rows_per_file: int = 40, keys: int = 7) -> list[Row]:
    """Rows with growing event times; every tenth comes twice, so that there is something to deduplicate."""
    directory.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for number in range(files):
        chunk = [
            {
                "id": i - (i % 10 == 9),
                "key": i % keys,
                "amount": i * i % 101,
                "at": f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z",
            }
            for i in range(number * rows_per_file, (number + 1) * rows_per_file)
        ]
        rows += chunk
        path = directory / f"{number:04}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in chunk))
        # The file source takes files by their time, in milliseconds: files of one moment come in any order.
        os.utime(path, (_FIRST_FILE_AT + number, _FIRST_FILE_AT + number))
    return rows


def outcome(batches: Iterable[list[list[Any]]], output: str) -> dict[str, Any]:
    """What a sink holds after these batches: the last value per key, or all rows with how often they came."""
    if output == "update":
        return {str(key): value for rows in batches for key, *value in rows}
    return dict(Counter(json.dumps(row) for rows in batches for row in rows))


def _read(spark: SparkSession, directory: str) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(directory)


def _sums(spark: SparkSession, directory: str) -> DataFrame:
    from pyspark.sql import functions

    rows = _read(spark, directory)
    return rows.groupBy("key").agg(functions.sum("amount").alias("total"), functions.count("*").alias("rows"))


def _expected_sums(rows: list[Row]) -> dict[str, Any]:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        totals[str(row["key"])][0] += row["amount"]
        totals[str(row["key"])][1] += 1
    return dict(totals)


def _windows(spark: SparkSession, directory: str) -> DataFrame:
    """Two stateful operators, one after the other, in append mode."""
    from pyspark.sql import functions

    unique = _read(spark, directory).withWatermark("at", "5 seconds").dropDuplicatesWithinWatermark(["id"])
    windowed = unique.groupBy(functions.window("at", f"{WINDOW_SECONDS} seconds")).agg(
        functions.sum("amount").alias("total")
    )
    return windowed.select(functions.col("window.start").cast("long").alias("start"), "total")


def _expected_windows(rows: list[Row]) -> dict[str, Any]:
    from datetime import datetime

    seen: set[int] = set()
    totals: Counter[int] = Counter()
    newest = 0
    for row in rows:
        at = int(datetime.fromisoformat(row["at"]).timestamp())
        newest = max(newest, at)
        if row["id"] not in seen:
            seen.add(row["id"])
            totals[at - at % WINDOW_SECONDS] += row["amount"]
    closed = {start: total for start, total in totals.items() if start + WINDOW_SECONDS <= newest - 5}
    return {json.dumps([start, total]): 1 for start, total in closed.items()}


def _dedup(spark: SparkSession, directory: str) -> DataFrame:
    """Nothing but what was seen before, for ever."""
    return _read(spark, directory).dropDuplicates(["id"]).select("id")


def _expected_dedup(rows: list[Row]) -> dict[str, Any]:
    return {json.dumps([number]): 1 for number in {row["id"] for row in rows}}


def _join(spark: SparkSession, directory: str) -> DataFrame:
    """A stream joined with itself through two sources: four state stores per partition."""
    from pyspark.sql import functions

    left = _read(spark, directory).where("id % 3 = 0").withWatermark("at", "1 hour").alias("l")
    right = _read(spark, directory).where("amount > 50").withWatermark("at", "1 hour").alias("r")
    joined = left.join(
        right,
        functions.expr("l.id = r.id AND l.at <= r.at + INTERVAL 1 HOUR AND r.at <= l.at + INTERVAL 1 HOUR"),
    )
    return joined.selectExpr("l.id", "l.amount", "r.amount AS other")


def _expected_join(rows: list[Row]) -> dict[str, Any]:
    right: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if row["amount"] > 50:
            right[row["id"]].append(row["amount"])
    pairs = (
        [row["id"], row["amount"], other] for row in rows if row["id"] % 3 == 0 for other in right[row["id"]]
    )
    return dict(Counter(json.dumps(pair) for pair in pairs))


def _transform_with_state(spark: SparkSession, directory: str) -> DataFrame:
    """Arbitrary state in Python, whose metadata names files by full path."""
    from tests.spark.checkpoint.running_total import RunningTotal

    return (
        _read(spark, directory)
        .groupBy("key")
        .transformWithStateInPandas(
            statefulProcessor=RunningTotal(),
            outputStructType="key long, total long, rows long",
            outputMode="Update",
            timeMode="None",
        )
    )


JOBS = {
    "sums": Job(_sums, _expected_sums, "update"),
    "windows": Job(_windows, _expected_windows, "append"),
    "dedup": Job(_dedup, _expected_dedup, "append"),
    "join": Job(_join, _expected_join, "append"),
    "transformWithState": Job(_transform_with_state, _expected_sums, "update"),
}
