"""Turns exceptions into what a user needs: one line, the error class, and the place in their own file."""

from __future__ import annotations

import linecache
import re
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

DRAINED_CLASS = "dev.headrace.DrainedException"
FENCED_CLASS = "dev.headrace.FencedException"

_LONGEST_MESSAGE = 700
_PACKAGE = str(Path(__file__).resolve().parent.parent)
_LIBRARY_DIRECTORIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_LIBRARY_MARKS = ("/site-packages/", "/dist-packages/", "/pyspark/", "/py4j/", "/pyspark.zip/")
# Wrappers: true, but the class inside them is the one that says what happened.
_WRAPPER_CLASSES = frozenset(
    {
        "STREAM_FAILED",
        "FOREACH_BATCH_USER_FUNCTION_ERROR",
        "FAILED_EXECUTE_UDF",
        "TASK_WRITE_FAILED",
        "PYTHON_DATA_SOURCE_ERROR",
        "INTERNAL_ERROR",
    }
)
# Another writer on the same checkpoint is no fault of the store.
_RIVAL_CLASSES = frozenset({"CONCURRENT_STREAM_LOG_UPDATE"})
_IO_PACKAGES = ("java.io.", "java.nio.", "java.net.", "javax.net.", "org.apache.hadoop.", "software.amazon.")
_TRACEBACK = "Traceback (most recent call last):"
_TRACEBACK_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in .*$')
_BRACKETED_CLASS = re.compile(r"^\[(?P<condition>[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
_NOISE = re.compile(r"\s*SQLSTATE: \w{5};?")
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(?P<name>[A-Za-z_]\w*)(?::\s*(?P<text>.*))?$")


@dataclass(frozen=True)
class UserCode:
    """Tells the user's own files from Spark's, Python's and Headrace's.

    `roots` are directories that are the user's although they look like a library's: a module that was
    installed into the image lies in site-packages.
    """

    roots: tuple[str, ...] = ()

    def owns(self, file: str) -> bool:
        if file.startswith(("<", _PACKAGE)):
            return False
        if any(file.startswith(root.rstrip("/") + "/") for root in self.roots):
            return True
        return not any(mark in file for mark in _LIBRARY_MARKS) and not file.startswith(_LIBRARY_DIRECTORIES)

    def innermost(self, frames: Iterable[traceback.FrameSummary]) -> UserFrame | None:
        for frame in reversed(list(frames)):
            if self.owns(frame.filename):
                return UserFrame(frame.filename, frame.lineno or 0, frame.line or "")
        return None


@dataclass(frozen=True)
class UserFrame:
    """A line of the user's own code."""

    file: str
    line: int
    code: str

    @property
    def label(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True)
class JavaFault:
    """One link of a Java cause chain, outermost first."""

    class_name: str
    message: str
    condition: str | None


@dataclass(frozen=True)
class Failure:
    """What went wrong, as the termination message and the status show it."""

    error_class: str
    message: str
    frame: UserFrame | None = None

    @property
    def sentence(self) -> str:
        return f"{self.frame.label}: {self.message}" if self.frame else self.message


def failure_of_exception(error: BaseException, own: UserCode) -> Failure:
    """For an exception that was raised in this process, in user code or below it."""
    if _TRACEBACK in str(error):  # of a UDF, which failed in a worker
        return _failure_of_python_text(str(error), own)
    condition = _condition_of(error)
    name = condition or type(error).__name__
    text = _first_line(str(error))
    frame = own.innermost(traceback.extract_tb(error.__traceback__))
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        frame = UserFrame(error.filename, error.lineno, (error.text or "").strip())
        text = error.msg
    return Failure(name, _with_name(name, text, python=condition is None), frame)


def failure_of_query(chain: Sequence[JavaFault], own: UserCode) -> Failure:
    """For a query that failed in the JVM; a UDF's Python traceback is inside one of the messages."""
    if not chain:
        return Failure("UNKNOWN", "the query ended with an error that Spark does not name")
    for fault in reversed(chain):
        if _TRACEBACK in fault.message:
            return _failure_of_python_text(fault.message, own)
    full = (fault for fault in reversed(chain) if _NO_SPACE in fault.message)
    telling = (fault for fault in reversed(chain) if _says_something(fault))
    told = next(full, None) or next(telling, chain[-1])
    name = told.condition or _bracketed(told.message) or told.class_name
    text = _NO_SPACE if _NO_SPACE in told.message else _first_line(told.message)
    return Failure(name, _with_name(name, text, python=False))


def ended_by(chain: Iterable[JavaFault], class_name: str) -> bool:
    return any(fault.class_name == class_name for fault in chain)


def is_store_fault(chain: Sequence[JavaFault], stack: str) -> bool:
    """True if the checkpoint could not be read or written: an error of I/O, raised below our file manager."""
    if not chain or any(fault.condition in _RIVAL_CLASSES for fault in chain):
        return False
    return chain[-1].class_name.startswith(_IO_PACKAGES) and "\tat dev.headrace." in stack


def failure_of_store(chain: Sequence[JavaFault]) -> Failure:
    """Of a store fault. Spark says what it was at; the file system says where, and why not."""
    faults = list(takewhile(lambda fault: fault.class_name.startswith(_IO_PACKAGES), reversed(chain)))
    # The innermost is the network's or the SDK's: the outermost of them names the file, and repeats it.
    told = faults[-1]
    text = f"{told.class_name.rpartition('.')[2]}: {_first_line(told.message)}"
    if any(_NO_SPACE in fault.message for fault in faults):
        text = f"{_NO_SPACE}. {_DISK_FULL}"
    return Failure(told.class_name, _shortened(text))


def _says_something(fault: JavaFault) -> bool:
    condition = fault.condition or _bracketed(fault.message)
    return condition is not None and condition.split(".")[0] not in _WRAPPER_CLASSES


def _failure_of_python_text(text: str, own: UserCode) -> Failure:
    lines = text[text.rindex(_TRACEBACK) :].splitlines()
    frames = list(_frames_in(lines, own))
    error_line = next((line for line in lines[1:] if line and not line[0].isspace()), "")
    match = _PYTHON_ERROR.match(error_line)
    name, told = (match["name"], match["text"] or "") if match else ("PythonException", error_line)
    condition = _bracketed(told)
    name, python = (condition, False) if condition else (name, True)
    return Failure(name, _with_name(name, _first_line(told), python=python), frames[-1] if frames else None)


def _frames_in(lines: Sequence[str], own: UserCode) -> Iterable[UserFrame]:
    for index, line in enumerate(lines):
        match = _TRACEBACK_FRAME.match(line)
        if match and own.owns(match["file"]):
            number = int(match["line"])
            printed = lines[index + 1].strip() if index + 1 < len(lines) else ""
            # The worker prints no code where it cannot read the file; the driver may be able to.
            code = printed if not printed.startswith("File ") else ""
            yield UserFrame(match["file"], number, code or linecache.getline(match["file"], number).strip())


def _condition_of(error: BaseException) -> str | None:
    """Spark's error class, also of the error inside a wrapper; None for other exceptions."""
    read = getattr(error, "getCondition", None)
    condition = read() if callable(read) else None
    if isinstance(condition, str) and condition.split(".")[0] not in _WRAPPER_CLASSES:
        return condition
    return _bracketed(str(error))


def _bracketed(text: str) -> str | None:
    for line in text.splitlines():
        match = _BRACKETED_CLASS.match(line.strip())
        if match and match["condition"].split(".")[0] not in _WRAPPER_CLASSES:
            return match["condition"]
    return None


def _with_name(name: str, text: str, *, python: bool) -> str:
    hint = _DISK_FULL if _NO_SPACE in text else suggestion_for(name)
    told = _shortened(f"{name}: {text}" if python and text else (text or name))
    return f"{told.rstrip('.')}. {hint}" if hint else told


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


def _first_line(text: str) -> str:
    stripped = _NOISE.sub("", text.strip())
    line = stripped.splitlines()[0].strip() if stripped else ""
    return _BRACKETED_CLASS.sub("", line).strip()


_NO_SPACE = "No space left on device"
_DISK_FULL = (
    "A disk is full: the one with the local copy of the state and shuffle files (on a cluster the node's; "
    "driver.scratch and executors.scratch bound what a pod takes of it), or a checkpoint.location that is a "
    "directory"
)

# Only where the fix is not already in Spark's own words. The longest matching prefix wins.
_SUGGESTIONS = {
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE": "The grouping key changed its type, and the state so far"
    " does not fit: change it back, or start without state (startFrom: none)",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE": "An aggregate was added or changed its type, and the state"
    " so far does not fit: change it back, or start without state (startFrom: none)",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA": "A stateful operator was added or removed:"
    " change it back, or start without state (startFrom: none)",
    "DATA_SOURCE_NOT_FOUND": "Add the connector's jars to application.jars",
    "TABLE_OR_VIEW_NOT_FOUND": "Check the name, and that the table exists before the job starts",
    "PATH_NOT_FOUND": "Create the path, or correct it in the application",
    "org.apache.kafka.common.errors.TopicAuthorizationException": "Give the job's user of Kafka the right to"
    " read and describe the topic",
    "java.nio.file.AccessDeniedException": "Give the job the right to read it",
    "CONCURRENT_STREAM_LOG_UPDATE": "Another query writes to this checkpoint: give each query its own name",
    "ModuleNotFoundError": "Add it to application.requirements or to the image",
    "java.lang.OutOfMemoryError": "Give the driver or the executors more memory",
    "PYTHON_VERSION_MISMATCH": "Driver and executors must run the same Python: use one image for both",
}


def suggestion_for(name: str) -> str | None:
    fitting = [prefix for prefix in _SUGGESTIONS if name.startswith(prefix)]
    return _SUGGESTIONS[max(fitting, key=len)] if fitting else None
