"""What a rehearsal finds, and how it tells: one incumbent, and candidates that are wrong in every way."""

import pytest

from tests.spark.harness.conftest import driving
from tests.spark.rehearsal.conftest import SUM, TAIL, Rehearsals, put_orders, script

pytestmark = pytest.mark.timeout(900)  # several JVMs each

HEAP = {"spark.driver.memory": "640m"}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """It has stopped, so that the tests need not share the machine with it; the store does not know."""
    place = tmp_path_factory.mktemp("job")
    drives = driving(place)
    rehearsals = Rehearsals(place, next(drives))
    incumbent = rehearsals.start_incumbent()
    incumbent.call("POST", "/v1/drain")
    assert incumbent.end()["reason"] == "Drained"
    yield rehearsals
    drives.close()


@pytest.fixture
def store_before(job):
    """Whatever the candidate does, the incumbent's run is as it was, and there is no next one."""
    store = job.place / "store"
    before = {path: path.stat().st_mtime_ns for path in (store / "run-1").rglob("*") if path.is_file()}
    yield
    after = {path: path.stat().st_mtime_ns for path in (store / "run-1").rglob("*") if path.is_file()}
    assert after == before
    assert not (store / "run-2").exists()
    assert not list(store.glob("rehearsal-*/queries"))


FINDINGS = {
    "crash at start": (
        'raise RuntimeError("no configuration")',
        "ApplicationError", "RuntimeError", "no configuration",
    ),
    "missing module": (
        "import no_such_module",
        "ApplicationError", "ModuleNotFoundError", "application.requirements",
    ),
    "exception in plan": (
        'totals = orders.groupBy("client").count()',
        "ApplicationError", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "client",
    ),
    "udf on real data": (
        """
        @F.udf("long")
        def share(amount):
            return 60 // (amount // 1000)  # the culprit

        totals = orders.withColumn("amount", share("amount")).groupBy("user").agg(F.sum("amount"))
        """,
        "QueryFailed", "ZeroDivisionError", "job",
    ),
    "parsing of real data": (
        'totals = orders.groupBy("user").agg(F.sum(F.col("user").cast("long")))',
        "QueryFailed", "CAST_INVALID_INPUT", "ann",
    ),
    "added aggregate": (
        'totals = orders.groupBy("user").agg(F.sum("amount"), F.max("amount"))',
        "QueryFailed", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "An aggregate was added",
    ),
    "changed key type": (
        'totals = orders.groupBy(F.length("user")).agg(F.sum("amount"))',
        "QueryFailed", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "The grouping key changed its type",
    ),
    "added stateful operator": (
        'totals = orders.dropDuplicates(["user", "amount"]).groupBy("user").agg(F.sum("amount"))',
        "QueryFailed", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", "added or removed",
    ),
    "removed stateful operator": (
        'totals = orders.select("user", "amount")',
        "QueryFailed", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", "added or removed",
    ),
    "added source": (
        'totals = orders.unionByName(orders).groupBy("user").agg(F.sum("amount"))',
        "MeaningChanged", None, "they are files in",
    ),
    "other source": (
        """
        (place / "other").mkdir(exist_ok=True)
        orders = spark.readStream.schema("user string, amount long, at timestamp").json(str(place / "other"))
        totals = orders.groupBy("user").agg(F.sum("amount").alias("total"))
        """,
        "MeaningChanged", None, "its sources were files in",
    ),
    "no name": (SUM, "Refused", "Refused", "queryName"),
    "sink that does not exist": (SUM, "ApplicationError", "DATA_SOURCE_NOT_FOUND", "application.jars"),
    "sink that cannot update": (SUM, "ApplicationError", "UNSUPPORTED_OUTPUT_MODE", "use append"),
}  # fmt: skip
TAILS = {
    "no name": 'totals.writeStream.outputMode("update").format("noop").start()',
    "sink that does not exist": """
        totals.writeStream.queryName("totals").outputMode("update").format("deltalake").start()
        """,
    "sink that cannot update": """
        totals.writeStream.queryName("totals").outputMode("update").format("json").start(str(place / "never"))
        """,
}


# One of each kind goes with every change; each costs a driver.
ALWAYS = ("missing module", "udf on real data", "added aggregate")


@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=() if fault in ALWAYS else pytest.mark.full) for fault in FINDINGS],
)
@pytest.mark.usefixtures("store_before")
def test_a_fault_is_found_before_anything_is_handed_over(job, fault):
    body, reason, error_class, told = FINDINGS[fault]
    text = script(body, tail=TAILS.get(fault, TAIL))
    end = job.rehearse(text)
    assert end["reason"] == reason, end["log"]
    assert error_class is None or end["errorClass"].startswith(error_class), end["message"]
    assert told in end["message"]
    assert end["rehearsal"]["outcome"] == "Failed"
    assert not (job.place / "never").exists()
    if "# the culprit" in text:
        assert "# the culprit" in end["userFrame"]["code"]


@pytest.mark.full
@pytest.mark.usefixtures("store_before")
def test_out_of_memory(job):
    body = """
        many = F.size(F.expr("sequence(1L, amount * 0L + 400000000L)")).cast("long")
        totals = orders.groupBy("user").agg(F.sum(many))
        """
    end = job.rehearse(script(body), spark_conf=HEAP)
    assert end["reason"] == "OutOfMemory", end["log"]
    assert end["errorClass"] == "java.lang.OutOfMemoryError"
    assert "more memory" in end["message"]


@pytest.mark.full
@pytest.mark.usefixtures("store_before")
def test_what_takes_too_long_is_told_with_what_it_was_at(job):
    body = """
        @F.udf("long")
        def slow(amount):
            time.sleep(300)

        totals = orders.groupBy("user").agg(F.sum(slow("amount")))
        """
    end = job.rehearse(script(body), rehearsal={"timeLimitSeconds": 8})
    assert end["reason"] == "RehearsalTimeout", end["log"]
    assert "upgrade.rehearsal.timeLimit" in end["message"]
    assert "query totals was in batch 3, the 1. of 3" in end["message"]


@pytest.mark.full
@pytest.mark.usefixtures("store_before")
def test_a_function_that_is_called_knows_that_it_rehearses_and_may_leave_its_frame_alone(job):
    body = """
        @F.udf("string")
        def told(amount):
            return f"{run.rehearsing} {run.epoch}"

        def keep(frame, batch_id):
            seen = [run.rehearsing, run.epoch, run.batch_id]
            with (place / "called.jsonl").open("a") as out:
                row = frame.sparkSession.range(1).select(told("id")).first()
                out.write(json.dumps([*seen, *row]) + "\\n")
        """
    end = job.rehearse(script(SUM, body), rehearsal={"callForeachBatch": True})
    assert end["reason"] == "Rehearsed", end["log"]
    lines = (job.place / "called.jsonl").read_text().splitlines()
    assert lines == [f'[true, 0, {batch}, "True 0"]' for batch in (3, 4, 5)]
    assert end["rehearsal"]["notes"] == []


@pytest.mark.usefixtures("store_before")
def test_new_queries_cleaning_sources_and_muted_sinks(job):
    """One candidate for all that passes: new queries, a source that would remove its files, muted sinks."""
    put_orders(job.place, 6)
    files = sorted(path.name for path in (job.place / "in").iterdir())
    body = """
        cleaning = spark.readStream.schema("user string, amount long, at timestamp") \\
            .option("maxFilesPerTrigger", 1).option("cleanSource", "delete").json(str(place / "in"))
        totals = cleaning.groupBy("user").agg(F.sum("amount").alias("total"))
        """
    tail = """
        query = totals.writeStream.queryName("totals").outputMode("update").foreachBatch(keep).start()
        cleaning.writeStream.queryName("copy").format("json").start(str(place / "copy"))
        cleaning.writeStream.queryName("table").toTable("archive")
        cleaning.writeStream.queryName("each").foreach(lambda row: (place / "each").touch()).start()
        states = [query.isActive, len(spark.streams.active), query.id == run.lineage("totals")]
        query.processAllAvailable()
        (place / "states.json").write_text(json.dumps([*states, query.isActive, bool(query.lastProgress)]))
        spark.streams.awaitAnyTermination()
        """
    end = job.rehearse(script(body, tail=tail))
    assert end["reason"] == "Rehearsed", end["log"]
    queries = end["rehearsal"]["queries"]
    assert (queries["totals"]["replayed"], queries["totals"]["empty"]) == ([6], True)
    assert "functions saw no rows" in " ".join(end["rehearsal"]["notes"])
    for name in ("copy", "table", "each"):
        assert (queries[name]["isNew"], queries[name]["replayed"], queries[name]["rows"]) == (True, [0], 3)
    assert sorted(path.name for path in (job.place / "in").iterdir()) == files
    for never in ("copy", "each", "spark-warehouse/archive"):
        assert not (job.place / never).exists()
    assert (job.place / "states.json").read_text() == "[true, 4, true, true, true]"
