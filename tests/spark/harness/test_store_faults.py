"""A store that fails under a query is no fault of the job's code, wherever Spark was when it met it."""

import re

import pytest

from tests.spark.harness.test_endings import script

PLAIN = """
counts.writeStream.queryName("counts").outputMode("update").format("noop").start().awaitTermination()
"""
IN_A_FUNCTION = """
def keep(frame, batch_id):
    frame.collect()
counts.writeStream.queryName("counts").outputMode("update").foreachBatch(keep).start().awaitTermination()
"""
IN_A_FUNCTION_THAT_WRAPS = IN_A_FUNCTION.replace(
    "    frame.collect()",
    """    try:
        frame.collect()
    except Exception as error:
        raise RuntimeError("the job's own words") from error""",
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "sink",
    [
        pytest.param(PLAIN, marks=pytest.mark.full),
        IN_A_FUNCTION,
        pytest.param(IN_A_FUNCTION_THAT_WRAPS, marks=pytest.mark.full),
    ],
    ids=["in the query", "in foreachBatch", "in foreachBatch, wrapped"],
)
def test_state_that_cannot_be_written_is_told_as_the_stores_fault(drive, sink):
    driver = drive(script('counts = ticks.groupBy((F.col("value") % 5).alias("k")).count()') + sink)
    driver.wait_for_batch("counts", 1)
    state = driver.run / "queries" / "counts" / "state"
    # What a broken mount looks like: the directory is none any more.
    state.rename(state.with_name("away"))
    state.touch()
    end = driver.end()
    assert end["reason"] == "StoreUnavailable", driver.log()[-5000:]
    # The directory, or the file that was being written in it.
    assert re.search(rf"FileSystemException: {re.escape(str(state))}/0[^:]*: Not a directory", end["message"])
