"""The run file is a contract between two programs: it is read strictly, and faults name the field."""

import json
from copy import deepcopy

import pytest

from headrace_jobs.harness.runfile import RunFileInvalid, parse_run_file
from tests.unit.harness.samples import GOOD, REHEARSAL


def with_change(path: str, value: object, good: dict = GOOD) -> str:
    content = deepcopy(good)
    *parents, last = path.split(".")
    section = content
    for name in parents:
        section = section[name]
    if value is KeyError:
        del section[last]
    else:
        section[last] = value
    return json.dumps(content)


def test_a_good_run_file():
    run_file = parse_run_file(json.dumps(GOOD))
    assert run_file.run_path == "s3://bucket/shop/orders/j-1/run-3"
    assert run_file.checkpoint_of("revenue") == "s3://bucket/shop/orders/j-1/run-3/queries/revenue"
    assert run_file.application.args == ("--x",)
    assert run_file.trigger.interval_seconds == 2.0
    assert run_file.application.label == "job.py"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("uid", KeyError, "uid: is missing"),
        ("job.name", KeyError, "job.name: is missing"),
        ("job", [], "job: must be an object"),
        ("run", 0, "run: 0 is not a whole number of at least 1"),
        ("attempt", "1", "attempt: '1' is not a whole number"),
        ("epoch", True, "epoch: True is not a whole number"),
        ("store", "bucket/x", "store: 'bucket/x' is not a URL"),
        ("store", "", "store: '' is not a text"),
        ("application.module", "pkg.job", "application: give either file or module"),
        ("application.file", None, "application: give either file or module"),
        ("application.args", "--x", "application.args: '--x' is not a list of texts"),
        ("trigger.mode", "Once", "trigger.mode: 'Once' is not Continuous or AvailableNow"),
        ("trigger.intervalSeconds", -1, "trigger.intervalSeconds: -1 is not a number above 0"),
        ("watchParent", "yes", "watchParent: 'yes' is not true or false"),
        ("watchdog.action", "Nothing", "watchdog.action: 'Nothing' is not Restart or Report"),
        ("kafka", "kafka:9092", "kafka: must be an object"),
        ("kafka", {"bootstrapServers": None}, "kafka.protocol: is missing"),
        ("agent.port", -1, "agent.port: -1 is not a whole number of at least 0"),
        ("standby", True, "unknown: standby"),
        ("agent.tls", True, "unknown: agent.tls"),
        ("mode", "rehearsal", "mode: 'rehearsal' is not active or rehearse"),
        ("mode", "rehearse", "rehearsal: belongs to mode rehearse, and only there"),
        ("rehearsal", REHEARSAL["rehearsal"], "rehearsal: belongs to mode rehearse, and only there"),
    ],
)
def test_a_fault_names_the_field(path, value, message):
    with pytest.raises(RunFileInvalid) as fault:
        parse_run_file(with_change(path, value))
    assert message in str(fault.value)


def test_a_rehearsal_works_beside_its_run_until_it_is_activated():
    run_file = parse_run_file(json.dumps(REHEARSAL))
    assert run_file.run_path == "s3://bucket/shop/orders/j-1/rehearsal-4"
    active = run_file.activated(run=4, attempt=1, epoch=8)
    assert active.run_path == "s3://bucket/shop/orders/j-1/run-4"
    assert (active.attempt, active.epoch, active.uid) == (1, 8, run_file.uid)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("epoch", 7, "epoch: 7 is not 0, and a rehearsal may not write"),
        ("rehearsal.fromRun", 4, "rehearsal.fromRun: run 4 cannot be rehearsed on itself"),
        ("rehearsal.batches", 0, "rehearsal.batches: 0 is not a whole number of at least 1"),
        ("rehearsal.timeLimitSeconds", 0, "rehearsal.timeLimitSeconds: 0 is not a number above 0"),
        ("rehearsal.callForeachBatch", None, "rehearsal.callForeachBatch: None is not true or false"),
        ("rehearsal.sinks", True, "unknown: rehearsal.sinks"),
        ("rehearsal", None, "rehearsal: belongs to mode rehearse, and only there"),
    ],
)
def test_a_fault_in_a_rehearsal_names_the_field(path, value, message):
    with pytest.raises(RunFileInvalid) as fault:
        parse_run_file(with_change(path, value, REHEARSAL))
    assert message in str(fault.value)


def test_credentials_are_not_repeated_in_a_message():
    with pytest.raises(RunFileInvalid) as fault:
        parse_run_file(with_change("sparkConf", {"spark.hadoop.fs.s3a.secret.key": ["hunter2"]}))
    assert "hunter2" not in str(fault.value)
    assert "sparkConf" in str(fault.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_not_a_run_file_at_all(text):
    with pytest.raises(RunFileInvalid):
        parse_run_file(text)
