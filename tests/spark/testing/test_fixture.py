"""The `headrace` fixture, as a data engineer uses it: on jobs that know nothing of it."""

import textwrap
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from headrace_jobs.harness.rules import Refused
from headrace_jobs.testing import InputProblem, Stream
from headrace_jobs.testing.manifest import ManifestProblem
from headrace_jobs.testing.player import JobFailed

REVENUE = """
import sys
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[4]").getOrCreate()
orders = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "broker.example:9092")
    .option("subscribe", "orders")
    .load()
    .select(F.from_json(F.col("value").cast("string"), "id long, price decimal(9,2), at timestamp"))
    .toDF("o")
    .select("o.*")
)
revenue = (
    orders.withWatermark("at", "1 minute")
    .groupBy(F.window("at", sys.argv[1]).alias("w"))
    .agg(F.sum("price").alias("revenue"))
    .select(F.col("w.start").alias("since"), "revenue")
)
revenue.writeStream.queryName("revenue").outputMode("append").trigger(processingTime="1 hour") \\
    .format("kafka").option("topic", "revenue").start()
copy = orders.writeStream.queryName("copy").start("s3a://nowhere/out", format="parquet")
spark.streams.awaitAnyTermination()
spark.stop()
"""


@pytest.fixture
def project(tmp_path, headrace):
    """Writes a manifest and a script, and runs the one through the other."""
    headrace._look_in = (tmp_path,)

    def write(script, *, args=(), conf=()):
        (tmp_path / "job.py").write_text(textwrap.dedent(script))
        lines = [
            "apiVersion: headrace.dev/v1alpha1",
            "kind: StreamJob",
            "metadata: {name: sample}",
            f"spec: {{application: {{file: job.py, args: {list(args)}}}, sparkConf: {{{', '.join(conf)}}}}}",
        ]
        (tmp_path / "job.yaml").write_text("\n".join(lines))
        return headrace

    return write


def an_order(number, price, at):
    return {"id": number, "price": price, "at": f"2024-05-01T10:{at}Z"}


def test_windows_close_when_the_rows_move_the_watermark(project):
    headrace = project(REVENUE, args=["1 minute"])
    result = headrace.run(
        "job.yaml",
        inputs={
            "orders": [
                [an_order(1, 5, "00:10"), an_order(2, "2.50", "00:50")],
                [an_order(3, 1, "02:30")],  # the watermark is 10:01:30 now: the first window is closed
                [an_order(4, 9, "00:20"), an_order(5, 4, "04:00")],  # one comes too late
            ]
        },
    )
    first, second, third = result["revenue"].steps
    assert first.rows == []
    assert second.rows == [{"since": datetime(2024, 5, 1, 10, 0, tzinfo=UTC), "revenue": Decimal("7.50")}]
    assert second.watermark == "2024-05-01T10:01:30.000Z"
    assert third.late_rows_dropped == 1
    assert [row["revenue"] for row in result["revenue"].rows] == [Decimal("7.50"), Decimal("1.00")]
    assert [row["id"] for row in result["copy"].rows] == [1, 2, 3, 4, 5]
    assert len(result["copy"].steps) == 3
    (kept,) = result["revenue"].state()
    assert Decimal("4.00") in kept["value"].values()


def test_a_plain_list_is_one_batch_and_arguments_can_be_replaced(project):
    headrace = project(REVENUE, args=["1 minute"])
    rows = [an_order(1, 5, "00:10"), an_order(2, 1, "09:00"), an_order(3, 1, "40:00")]
    result = headrace.run("job.yaml", inputs={"orders": rows}, args=["10 minutes"])
    assert [row["revenue"] for row in result["revenue"].rows] == [6]


JOIN = """
from pyspark.sql import SparkSession, functions as F
from pricing import with_tax
spark = SparkSession.builder.getOrCreate()
sales = spark.readStream.schema("shop string, item string, n int").json("/data/landing/sales/")
returns = spark.readStream.table("lake.returns").withColumnRenamed("n", "back")
items = spark.read.parquet("s3a://lake/items")
taxed = F.udf(with_tax, "double")
net = sales.join(items, "item").withColumn("price", taxed("price"))

def write(frame, batch_id):
    from headrace_jobs import run
    calls.append((batch_id, run.batch_id, run.managed, frame.count()))

calls = []
net.writeStream.queryName("net").foreachBatch(write).start()
query = returns.groupBy("item").agg(F.sum("back").alias("back")).writeStream.queryName("back") \\
    .outputMode("complete").format("memory").start()
while query.isActive:
    raise AssertionError("a played query has ended")
print(len(calls), "calls")
"""


def test_files_tables_static_data_udfs_and_foreach_batch(project, tmp_path, capsys):
    headrace = project(JOIN)
    (tmp_path / "pricing.py").write_text("def with_tax(price):\n    return price * 1.5\n")
    given = {
        "inputs": {
            "sales": [[{"shop": "a", "item": "tea", "n": 2}], [], [{"shop": "b", "item": "tea"}]],
            "lake.returns": [[{"item": "tea", "n": 1}], [{"item": "tea", "n": 4}]],
        },
        "tables": {"items": [{"item": "tea", "price": 2.0}]},
    }
    result = headrace.run("job.yaml", **given)
    assert [[row["price"] for row in step.rows] for step in result["net"].steps] == [[3.0], [], [3.0]]
    assert result["net"].rows[1]["n"] is None
    assert result["back"].rows == [{"item": "tea", "back": 5}]
    assert result["back"].steps[0].rows == [{"item": "tea", "back": 1}]
    assert "0 calls" in capsys.readouterr().out
    headrace.run("job.yaml", **given, call_foreach_batch=True)
    assert "3 calls" in capsys.readouterr().out


COPY = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("k string, at timestamp, raw binary").json("in")
rows.writeStream.queryName("copy").start("out")
"""


def test_values_arrive_with_their_types(project):
    row = {"k": "ü", "at": datetime(2024, 1, 1, 12, 30, 1, 5000, tzinfo=UTC), "raw": b"\x00\xff"}
    result = project(COPY).run("job.yaml", inputs={"in": [row, {"k": None}]})
    assert result["copy"].rows == [row, {"k": None, "at": None, "raw": None}]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "the job reads json 'in', and inputs is empty. Add rows for it: inputs={'in'"),
        ({"inn": []}, "the job reads json 'in', and inputs has: inn."),
        ({"in": [], "out": []}, "inputs['out'] is never read; the job reads json 'in'"),
        ({"in": [{"kk": "x"}]}, "inputs['in'], batch 0: there is no column 'kk'; did you mean 'k'?"),
        ({"in": [[], [1]]}, "inputs['in'], batch 1: a row must be a dict, not int"),
        ({"in": "x"}, "inputs['in'] is no list of rows"),
        ({"in": [{"k": object()}]}, "a value of type object cannot be given"),
    ],
)
def test_inputs_that_do_not_fit_are_told(project, inputs, message):
    with pytest.raises(InputProblem) as problem:
        project(COPY).run("job.yaml", inputs=inputs)
    assert message in str(problem.value)


def test_columns_that_nobody_names_come_from_the_rows_or_from_the_test(project):
    script = COPY.replace('.schema("k string, at timestamp, raw binary").json("in")', '.table("db.events")')
    assert project(script).run("job.yaml", inputs={"events": [{"a": 1}]})["copy"].rows == [{"a": 1}]
    stream = Stream([[], [{"a": 1}]], schema="a int, b string")
    assert project(script).run("job.yaml", inputs={"db.events": stream})["copy"].rows == [{"a": 1, "b": None}]
    with pytest.raises(InputProblem):
        project(script).run("job.yaml", inputs={"events": []})


def test_a_value_of_a_wrong_type_fails_instead_of_becoming_null(project):
    with pytest.raises(JobFailed):
        project(COPY).run("job.yaml", inputs={"in": [{"at": "yesterday"}]})


def test_the_rules_of_the_harness_hold_in_tests_too(project):
    with pytest.raises(Refused):
        project(COPY.replace('.start("out")', '.option("checkpointLocation", "x").start("out")')).run(
            "job.yaml", inputs={"in": []}
        )
    with pytest.raises(Refused):
        project(COPY.replace('.queryName("copy")', "")).run("job.yaml", inputs={"in": []})
    with pytest.raises(Refused):
        project(COPY, conf=["spark.sql.streaming.checkpointLocation: /x"]).run("job.yaml", inputs={"in": []})


def test_a_failing_query_names_the_users_line(project):
    script = COPY.replace("rows.write", "upper = udf(lambda k: k.upper())\nrows.select(upper('k')).write")
    with pytest.raises(JobFailed) as failed:
        project("from pyspark.sql.functions import udf" + script).run(
            "job.yaml", inputs={"in": [{"k": None}]}
        )
    assert str(failed.value) == (
        "query copy failed: job.py:5: AttributeError: 'NoneType' object has no attribute 'upper'"
    )


def test_settings_of_the_manifest_reach_the_job_and_not_the_next_one(project, capsys):
    script = COPY + 'print("zone", spark.conf.get("spark.sql.session.timeZone"))\n'
    project(script, conf=["spark.sql.session.timeZone: Asia/Tokyo"]).run("job.yaml", inputs={"in": []})
    assert "zone Asia/Tokyo" in capsys.readouterr().out
    project(script).run("job.yaml", inputs={"in": []})
    assert "zone UTC" in capsys.readouterr().out


def test_an_exception_of_the_script_comes_out_as_it_is(project):
    with pytest.raises(ZeroDivisionError):
        project(COPY + "1 / 0\n").run("job.yaml", inputs={"in": [{"k": "a"}]})
    with pytest.raises(SystemExit):
        project(COPY + "raise SystemExit(2)\n").run("job.yaml", inputs={"in": [{"k": "a"}]})


def test_a_python_file_without_a_manifest_will_do(project):
    assert project(COPY).run("job.py", inputs={"in": [{"k": "a"}]})["copy"].rows[0]["k"] == "a"


def test_what_cannot_be_found_is_told(project):
    headrace = project(COPY)
    with pytest.raises(ManifestProblem):
        headrace.run("jib.yaml", inputs={})
    result = headrace.run("job.yaml", inputs={"in": []})
    with pytest.raises(KeyError) as missing:
        _ = result["kopy"]
    assert "it has: copy" in str(missing.value)
