"""Plans as Spark makes them, and what we read from them: `python -m tests.spark.rehearsal.plans`.

A process of its own: what is noted must not depend on the session.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace_jobs.harness.failure import UserCode
from headrace_jobs.harness.meaning_notes import Functions, Meanings
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.writer import Start, WriterState
from headrace_jobs.jvm import java_environment

FRAMES: dict[str, Callable[[Any, Any], Any]] = {}


def frame(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    FRAMES[function.__name__] = function
    return function


def totals(orders: Any, *aggregates: Any, by: Any = "user") -> Any:
    return orders.groupBy(by).agg(*aggregates)


def define(name: str, of: Callable[[Any, Any], Any]) -> None:
    FRAMES[name] = of


define("sum", lambda o, f: totals(o, f.sum("amount").alias("total")))
define("max", lambda o, f: totals(o, f.max("amount").alias("total")))
define("sum of cents", lambda o, f: totals(o, f.sum(f.col("amount") * 100).alias("total")))
define(
    "sum, otherwise called", lambda o, f: totals(o, f.sum("amount").alias("t")).withColumnRenamed("t", "x")
)
define(
    "sum, renamed on the way",
    lambda o, f: totals(
        o.select(f.col("user").alias("client"), f.col("amount").alias("cents"), "at"),
        f.sum("cents"),
        by="client",
    ),
)
define("sum, filtered before", lambda o, f: totals(o.where("amount > 3"), f.sum("amount")))
define("sum, projected after", lambda o, f: totals(o, f.sum("amount").alias("t")).selectExpr("t * 2", "user"))
define("sum, computed on", lambda o, f: totals(o, (f.sum("amount") * 2 + 1).alias("total")))
define("sum in SQL", lambda o, _f: _sql(o, "select user, sum(amount) from orders group by user"))
define("sum by upper", lambda o, f: totals(o, f.sum("amount"), by=f.upper("user")))
define("sum then max", lambda o, f: totals(o, f.sum("amount"), f.max("amount")))
define("max then sum", lambda o, f: totals(o, f.max("amount"), f.sum("amount")))
define("distinct sum", lambda o, f: totals(o, f.sum_distinct("amount")))
define("first", lambda o, f: totals(o, f.first("amount")))
define("first that is there", lambda o, f: totals(o, f.first("amount", ignorenulls=True)))
define("two keys", lambda o, f: o.groupBy("user", "shop").agg(f.sum("amount")))
define("two keys swapped", lambda o, f: o.groupBy("shop", "user").agg(f.sum("amount")))
define(
    "window 1 m", lambda o, f: o.withWatermark("at", "1 minute").groupBy(f.window("at", "1 minute")).count()
)
define(
    "window 5 m", lambda o, f: o.withWatermark("at", "1 minute").groupBy(f.window("at", "5 minutes")).count()
)
define(
    "window, later",
    lambda o, f: o.withWatermark("at", "9 minutes").groupBy(f.window("at", "1 minute")).count(),
)
define("seen users", lambda o, _f: o.dropDuplicates(["user"]))
define("seen shops", lambda o, _f: o.dropDuplicates(["shop"]))
define("no state", lambda o, _f: o.select("user"))


@frame
def joined(orders: Any, f: Any) -> Any:
    return _joined(orders, f, "inner", "a.user = b.user and a.at >= b.at")


@frame
def joined_left(orders: Any, f: Any) -> Any:
    return _joined(orders, f, "left_outer", "a.user = b.user and a.at >= b.at")


@frame
def joined_otherwise(orders: Any, f: Any) -> Any:
    return _joined(orders, f, "inner", "a.user = b.shop and a.at >= b.at")


@frame
def with_function(orders: Any, f: Any) -> Any:
    @f.udf("long")
    def share(amount):
        return amount * 2

    return totals(orders, f.sum(share("amount")))


@frame
def with_function_moved(orders: Any, f: Any) -> Any:
    # Elsewhere in the file, with words about it, and its values computed at the start.
    @f.udf("long")
    def share(amount):
        """Twice the amount."""
        return amount * 2  # the same

    return totals(orders, f.sum(share("amount")))


@frame
def with_function_changed(orders: Any, f: Any) -> Any:
    @f.udf("long")
    def share(amount):
        return amount * 3

    return totals(orders, f.sum(share("amount")))


def _helper(amount):
    return amount + 1


def _other_helper(amount):
    return amount + 2


@frame
def with_helper(orders: Any, f: Any) -> Any:
    help_it = _helper
    return totals(orders, f.sum(f.udf(lambda amount: help_it(amount) + 1, "long")("amount")))


@frame
def with_other_helper(orders: Any, f: Any) -> Any:
    help_it = _other_helper
    return totals(orders, f.sum(f.udf(lambda amount: help_it(amount) + 1, "long")("amount")))


def _processor(step: int) -> Any:
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    if step == 1:

        class Counter(StatefulProcessor):
            def init(self, handle):
                self.n = handle.getValueState("n", "n long")

            def handleInputRows(self, key, rows, timers):
                yield Row(n=len(list(rows)))

            def close(self):
                pass
    else:

        class Counter(StatefulProcessor):
            def init(self, handle):
                self.n = handle.getValueState("n", "n long")

            def handleInputRows(self, key, rows, timers):
                yield Row(n=2 * len(list(rows)))

            def close(self):
                pass

    return Counter()


def _processed(orders: Any, step: int) -> Any:
    return orders.groupBy("user").transformWithState(_processor(step), "n long", "append", "none")


define("processor", lambda o, _f: _processed(o, 1))
define("processor changed", lambda o, _f: _processed(o, 2))


def _files(orders: Any, path: str) -> Any:
    return orders.sparkSession.readStream.schema("user string").json(path)


# Any two directories that are always there, and small: Spark lists them.
HERE, THERE = str(Path(__file__).parent), str(Path(__file__).parents[1] / "testing")
define("files", lambda o, _f: _files(o, HERE))
define("files, by a url", lambda o, _f: _files(o, f"file://{HERE}/"))
define("files elsewhere", lambda o, _f: _files(o, THERE))
define("files and more", lambda o, _f: _files(o, HERE).union(_files(o, THERE)))
define("more and files", lambda o, _f: _files(o, THERE).union(_files(o, HERE)))


def _joined(orders: Any, f: Any, how: str, condition: str) -> Any:
    left = orders.withWatermark("at", "1 minute").alias("a")
    right = orders.select("user", "shop", "at").withWatermark("at", "2 minutes").alias("b")
    return left.join(right, f.expr(condition), how)


def _sql(orders: Any, text: str) -> Any:
    orders.createOrReplaceTempView("orders")
    return orders.sparkSession.sql(text)


def main() -> None:
    os.environ.update(java_environment())
    from pyspark.sql import SparkSession, functions

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.readStream.format("rate").load()
    orders = lines.selectExpr(
        "cast(value as string) as user",
        "concat('shop ', value) as shop",
        "value as amount",
        "timestamp as at",
    )
    # Ids of expressions are counted up in a session: what is noted must not depend on them.
    for _ in range(int(sys.argv[1])):
        orders.select("user")
    told = {}
    for name, make in FRAMES.items():
        patches, noted = Patches(), Functions(UserCode())
        noted.take_over(patches)
        made = make(orders, functions)
        state = WriterState()
        meaning = Meanings(spark, noted).note(Start(name, made, state, False, lambda: None))
        told[name] = meaning.to_json() if meaning is not None else None
        patches.undo()
    sys.stdout.write(json.dumps(told))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
