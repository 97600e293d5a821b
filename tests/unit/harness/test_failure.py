"""What a user reads when something goes wrong: one line, the error class, their own file and line."""

import textwrap
from pathlib import Path

import pytest

from headrace_jobs.harness.failure import (
    JavaFault,
    UserCode,
    UserFrame,
    failure_of_exception,
    failure_of_query,
    failure_of_store,
    is_store_fault,
)

OWN = UserCode()


def raised_by(source: str, path: Path) -> BaseException:
    path.write_text(textwrap.dedent(source))
    try:
        exec(compile(path.read_text(), str(path), "exec"), {})
    except BaseException as error:
        return error
    raise AssertionError("it was meant to raise")


def test_the_innermost_line_of_the_user_is_named_not_the_librarys(tmp_path):
    error = raised_by(
        """
        import json

        def parse(text):
            return json.loads(text)

        parse("{")
        """,
        tmp_path / "job.py",
    )
    failure = failure_of_exception(error, OWN)
    assert failure.error_class == "JSONDecodeError"
    assert failure.frame == UserFrame(str(tmp_path / "job.py"), 5, "return json.loads(text)")
    assert failure.sentence.startswith("job.py:5: JSONDecodeError: Expecting property name")


def test_a_syntax_error_is_where_it_is_written(tmp_path):
    failure = failure_of_exception(raised_by("x = 1\nif x\n    pass\n", tmp_path / "job.py"), OWN)
    assert failure.error_class == "SyntaxError"
    assert failure.frame is not None
    assert (failure.frame.line, failure.frame.code) == (2, "if x")


def test_a_missing_module_comes_with_the_fix(tmp_path):
    failure = failure_of_exception(raised_by("import no_such_thing_at_all", tmp_path / "job.py"), OWN)
    assert failure.sentence == (
        "job.py:1: ModuleNotFoundError: No module named 'no_such_thing_at_all'."
        " Add it to application.requirements or to the image"
    )


class SparkError(Exception):
    """Looks like pyspark's."""

    def getCondition(self):
        return "TABLE_OR_VIEW_NOT_FOUND"


def test_sparks_error_class_is_preferred_to_pythons():
    failure = failure_of_exception(
        SparkError(
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `t` cannot be found. SQLSTATE: 42P01;\n'Project"
        ),
        OWN,
    )
    assert failure.error_class == "TABLE_OR_VIEW_NOT_FOUND"
    assert failure.message.startswith("The table or view `t` cannot be found. Check the name")


def test_the_class_inside_a_wrapper_counts():
    chain = [
        JavaFault("StreamingQueryException", "[STREAM_FAILED] Query [id = 1] terminated", "STREAM_FAILED"),
        JavaFault(
            "SparkException", "[FOREACH_BATCH_USER_FUNCTION_ERROR] oh", "FOREACH_BATCH_USER_FUNCTION_ERROR"
        ),
        JavaFault(
            "StateSchema",
            "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match. SQLSTATE: XXKST",
            "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
        ),
    ]
    failure = failure_of_query(chain, OWN)
    assert failure.error_class == "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
    assert "startFrom: none" in failure.message


def test_a_plain_java_error_is_told_by_its_class():
    chain = [
        JavaFault("StreamingQueryException", "[STREAM_FAILED] Query terminated", "STREAM_FAILED"),
        JavaFault("java.lang.OutOfMemoryError", "Java heap space", None),
    ]
    failure = failure_of_query(chain, OWN)
    assert failure.error_class == "java.lang.OutOfMemoryError"
    assert failure.message == "Java heap space. Give the driver or the executors more memory"


def test_a_full_disk_is_told_as_such_wherever_in_the_chain_it_shows():
    chain = [
        JavaFault("org.apache.spark.SparkException", "Job aborted due to stage failure", "STREAM_FAILED"),
        JavaFault(
            "org.rocksdb.RocksDBException",
            "While appending to file: /work/spark/x/000012.sst: No space left on device\nmore",
            None,
        ),
        JavaFault("org.apache.spark.SparkException", "[CANNOT_LOAD_STATE_STORE.X] it cannot", "CANNOT_LOAD"),
    ]
    failure = failure_of_query(chain, OWN)
    assert failure.error_class == "org.rocksdb.RocksDBException"
    assert failure.message.startswith("No space left on device. A disk is full")
    assert "executors.scratch" in failure.message


@pytest.mark.parametrize(
    ("class_name", "told", "hint"),
    [
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException",
            "Not authorized to access topics: [payments]",
            "read and describe the topic",
        ),
        ("java.nio.file.AccessDeniedException", "s3a://acme/in: 403 Forbidden", "the right to read it"),
    ],
)
def test_missing_rights_to_read_a_source_are_no_fault_of_the_store(class_name, told, hint):
    chain = [
        JavaFault("StreamingQueryException", "[STREAM_FAILED] Query terminated", "STREAM_FAILED"),
        JavaFault("org.apache.spark.SparkException", "Job aborted due to stage failure", None),
        JavaFault(class_name, told, None),
    ]
    failure = failure_of_query(chain, OWN)
    assert failure.error_class == class_name
    assert failure.message.startswith(f"{told}. Give the job")
    assert hint in failure.message
    assert not is_store_fault(chain, "\tat org.apache.spark.sql.execution.Scan.read(X.java:9)")


def test_a_udfs_traceback_inside_javas_message_names_the_users_line():
    message = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 1, in main\n'
        "    process()\n"
        '  File "/app/job.py", line 12, in to_cents\n'
        "    return int(price) * 100\n"
        "           ^^^^^^^^^^\n"
        "ValueError: invalid literal for int() with base 10: 'x'\n"
    )
    chain = [
        JavaFault("StreamingQueryException", "[STREAM_FAILED] Query terminated", "STREAM_FAILED"),
        JavaFault("PythonException", message, None),
    ]
    failure = failure_of_query(chain, OWN)
    assert failure.error_class == "ValueError"
    assert failure.frame == UserFrame("/app/job.py", 12, "return int(price) * 100")
    assert failure.sentence == "job.py:12: ValueError: invalid literal for int() with base 10: 'x'"


def test_a_udf_that_failed_under_a_foreach_batch_names_its_own_line():
    error = RuntimeError(
        "An exception was thrown from the Python worker:\n"
        "Traceback (most recent call last):\n"
        '  File "/app/job.py", line 6, in <lambda>\n'
        "    k.upper()\n"
        "AttributeError: 'NoneType' object has no attribute 'upper'\n"
    )
    failure = failure_of_exception(error, OWN)
    assert failure.sentence == "job.py:6: AttributeError: 'NoneType' object has no attribute 'upper'"


@pytest.mark.parametrize(
    ("class_name", "condition", "stack", "store"),
    [
        ("java.nio.file.AccessDeniedException", None, "\tat dev.headrace.ObjectFiles.create(X.java:9)", True),
        ("java.net.SocketTimeoutException", None, "\tat dev.headrace.RunFence.check(X.java:9)", True),
        ("java.net.SocketTimeoutException", None, "\tat org.apache.kafka.Client.poll(X.java:9)", False),
        ("java.lang.NullPointerException", None, "\tat dev.headrace.ObjectFiles.create(X.java:9)", False),
        ("java.io.IOException", "CONCURRENT_STREAM_LOG_UPDATE", "\tat dev.headrace.X.y(X.java:9)", False),
    ],
)
def test_what_the_store_is_to_blame_for(class_name, condition, stack, store):
    chain = [JavaFault("StreamingQueryException", "", None), JavaFault(class_name, "", condition)]
    assert is_store_fault(chain, stack) is store


WRAPPED = (
    JavaFault("StreamingQueryException", "[STREAM_FAILED] Query terminated", "STREAM_FAILED"),
    JavaFault("org.apache.spark.SparkException", "Cannot commit", "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT"),
)


@pytest.mark.parametrize(
    ("faults", "class_name", "says"),
    [
        (
            [
                ("java.nio.file.AccessDeniedException", "s3a://b/x: Writing: Access Denied (403)\nmore"),
                ("software.amazon.awssdk.services.s3.model.S3Exception", "Access Denied (403)"),
            ],
            "java.nio.file.AccessDeniedException",
            "AccessDeniedException: s3a://b/x: Writing: Access Denied (403)",
        ),
        (
            [("java.nio.file.FileSystemException", "/store/x: Not a directory")],
            "java.nio.file.FileSystemException",
            "FileSystemException: /store/x: Not a directory",
        ),
        (
            [("java.io.IOException", "/store/x: No space left on device")],
            "java.io.IOException",
            "No space left on device. A disk is full",
        ),
    ],
    ids=["S3", "directory", "full"],
)
def test_a_store_fault_is_told_with_the_file_and_the_cause(faults, class_name, says):
    failure = failure_of_store([*WRAPPED, *(JavaFault(name, text, None) for name, text in faults)])
    assert failure.error_class == class_name
    assert failure.message.startswith(says)
    assert "\n" not in failure.message


def test_no_chain_is_no_crash():
    assert failure_of_query([], OWN).error_class == "UNKNOWN"


@pytest.mark.parametrize(
    ("file", "roots", "owned"),
    [
        ("/app/job.py", (), True),
        ("/venv/lib/python3.11/site-packages/shop/job.py", (), False),
        (
            "/venv/lib/python3.11/site-packages/shop/job.py",
            ("/venv/lib/python3.11/site-packages/shop",),
            True,
        ),
        (
            "/venv/lib/python3.11/site-packages/shopping/job.py",
            ("/venv/lib/python3.11/site-packages/shop",),
            False,
        ),
        ("/opt/spark/python/pyspark/sql/dataframe.py", (), False),
        ("<frozen importlib._bootstrap>", (), False),
        (__import__("json").__file__, (), False),
    ],
)
def test_whose_file_it_is(file, roots, owned):
    assert UserCode(roots).owns(file) is owned


def test_long_messages_are_cut():
    failure = failure_of_exception(ValueError("x" * 5000), OWN)
    assert len(failure.message) <= 700
