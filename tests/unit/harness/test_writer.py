"""The rules for queries, without Spark."""

import pytest

from headrace_jobs import run
from headrace_jobs.harness.managed import BatchScope
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.writer import check_name, check_option, check_trigger, in_batch_scope


@pytest.mark.parametrize("name", ["orders", "Orders-2.v1_x", "a" * 100])
def test_good_names(name):
    assert check_name(name) == name


@pytest.mark.parametrize("name", [None, "", "a b", "a/b", "../x", ".x", "a" * 101, "ü"])
def test_bad_names_are_refused_with_the_fix(name):
    with pytest.raises(Refused) as refusal:
        check_name(name)
    assert "queryName" in str(refusal.value) or "letters" in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("checkpointLocation", "/tmp/x"), ("CHECKPOINTLOCATION", "x"), ("asyncProgressTrackingEnabled", True)],
)
def test_options_that_would_break_a_promise(key, value):
    with pytest.raises(Refused) as refusal:
        check_option(key, value)
    assert "Remove the" in str(refusal.value)


def test_other_options_and_triggers_are_fine():
    check_option("path", "/out")
    check_option("asyncProgressTrackingEnabled", "false")
    check_trigger({"processingTime": "1 second"})
    for kind in ("continuous", "realTime"):
        with pytest.raises(Refused):
            check_trigger({kind: "1 second"})


def test_a_function_runs_inside_its_batch_and_its_exception_is_kept():
    seen = []
    scope = BatchScope()
    scope.lineage = "lineage-1"

    def write(frame, batch_id):
        seen.append((frame, batch_id, run.batch_id, run.lineage()))
        if batch_id == 1:
            raise KeyError("x")

    process = in_batch_scope(write, scope)
    process("frame", 0)
    assert seen == [("frame", 0, 0, "lineage-1")]
    with pytest.raises(KeyError):
        process("frame", 1)
    assert isinstance(scope.error, KeyError)
    assert process.__name__ == "write"


def test_patches_can_be_put_back():
    class Thing:
        def speak(self):
            return "one"

    patches = Patches()
    patches.replace(Thing, "speak", lambda original: lambda self: original(self) + " two")
    assert Thing().speak() == "one two"
    patches.undo()
    assert Thing().speak() == "one"
