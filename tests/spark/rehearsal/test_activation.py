"""Standby and handover: the candidate becomes the writer, warm, and every record counts exactly once."""

import json
import os
import signal

import pytest

from tests.spark.harness.conftest import wait_for
from tests.spark.rehearsal.conftest import SUM, in_phase, output, put_orders, script

pytestmark = pytest.mark.timeout(900)  # several JVMs each

ORDER = {"run": 2, "attempt": 1, "epoch": 2}
STANDBY = {"standbySeconds": 600}
WATCHED = """
import threading
def watch():
    while True:
        try:
            told = [query.isActive, len(spark.streams.active), run.rehearsing, run.epoch]
        except NameError:
            continue
        fresh = place / "watched.tmp"
        fresh.write_text(json.dumps(told))
        fresh.rename(place / "watched.json")
        time.sleep(0.05)
threading.Thread(target=watch, daemon=True).start()

@F.udf("long")
def epoch(total):
    return -1 if run.rehearsing else run.epoch
"""


def activate(candidate, **changes):
    return candidate.call("POST", "/v1/activate", json.dumps(ORDER | changes).encode())


def totals(place, user="ann"):
    """The newest total of a user, as the sink saw it."""
    found = [json.loads(row) for line in output(place) for row in line["rows"]]
    return [row["total"] for row in found if row["user"] == user][-1]


def test_a_candidate_takes_over_warm(rehearsals):
    place = rehearsals.place
    incumbent = rehearsals.start_incumbent()
    text = script(WATCHED, SUM + '.withColumn("by", epoch("total"))')
    candidate = rehearsals.start_candidate(text, rehearsal=STANDBY)
    assert in_phase(candidate, "Standby")["rehearsal"]["outcome"] == "Passed"
    pids = candidate.process.pid, candidate.jvm_pid()
    watched = place / "watched.json"

    def tells(*wanted):
        return watched.exists() and json.loads(watched.read_text()) == list(wanted)

    wait_for(lambda: tells(True, 1, True, 0), "the script does not wait")
    assert activate(candidate, attempt=0)[0] == 400

    # The incumbent goes on, and what it does then is part of the handover.
    put_orders(place, 6, 7)
    incumbent.wait_for_batch("totals", 7)
    incumbent.call("POST", "/v1/drain")
    assert incumbent.end()["reason"] == "Drained"
    put_orders(place, 8)
    assert activate(candidate)[0] == 202
    assert activate(candidate)[0] == 202, "asked again"
    assert activate(candidate, epoch=3)[0] == 409

    candidate.run = candidate.store / "run-2"
    candidate.wait_for_batch("totals", 8)
    status = candidate.status()
    assert (status["phase"], status["run"], status["attempt"], status["epoch"]) == ("Running", 2, 1, 2)
    activation = wait_for(
        lambda: (told := candidate.status()["activation"])["state"] == "Done" and told, "never done"
    )
    assert activation["firstBatches"] == {"totals": 8}
    assert set(activation["seconds"]) == {"copy", "claim", "start", "firstBatch"}
    assert (candidate.process.pid, candidate.jvm_pid()) == pids
    wait_for(lambda: tells(True, 1, False, 2), "run.* still tells of the rehearsal")

    put_orders(place, 9)
    candidate.wait_for_batch("totals", 9)
    assert [(line["run"], line["epoch"], line["batch"]) for line in output(place)] == [
        *((1, 1, batch) for batch in range(8)),
        (2, 2, 8),
        (2, 2, 9),
    ]
    assert totals(place) == sum(range(1, 11))
    by = {json.loads(row)["by"] for line in output(place) if line["run"] == 2 for row in line["rows"]}
    assert by == {2}, "what its functions see on the workers, which are those of the rehearsal"
    candidate.call("POST", "/v1/drain")
    end = candidate.end()
    assert (end["reason"], end["clean"], end["queries"]["totals"]["batch"]) == ("Drained", True, 9)
    assert "rehearsal" not in end
    assert candidate.offsets("totals") == candidate.commits("totals")
    lineages = {json.loads((incumbent.store / run / "queries/totals/metadata").read_text())["id"]
                for run in ("run-1", "run-2")}  # fmt: skip
    assert len(lineages) == 1, "the lineage goes on"


def test_a_batch_that_was_cut_must_be_accepted_and_a_crash_after_the_claim_is_an_ordinary_one(rehearsals):
    place = rehearsals.place
    block = """
        keep_on = keep
        def keep(frame, batch_id):
            keep_on(frame, batch_id)
            while batch_id == 6 and run.number == 1 and run.attempt == 1:
                time.sleep(0.1)
        """
    incumbent = rehearsals.start_incumbent(script(SUM, block))
    candidate = rehearsals.start_candidate(script(), rehearsal=STANDBY)
    in_phase(candidate, "Standby")
    put_orders(place, 6)
    wait_for(lambda: len(output(place)) == 7, "batch 6 does not come")
    incumbent.kill()

    assert activate(candidate)[0] == 202
    failed = wait_for(
        lambda: (told := candidate.status())["activation"]["state"] == "Failed" and told, "it was accepted"
    )
    assert "PendingBatch: batch 6 of query totals" in failed["activation"]["message"]
    in_phase(candidate, "Standby")
    assert not (candidate.store / "run-2" / "_attempts").exists()
    assert activate(candidate, acceptPending=True)[0] == 202
    claim = candidate.store / "run-2" / "_attempts" / "1"
    candidate.wait_for_file(claim)
    os.kill(candidate.jvm_pid(), signal.SIGKILL)
    candidate.kill()

    put_orders(place, 7)
    after = rehearsals.start(script(), run=2, attempt=2, epoch=3)
    after.wait_for_batch("totals", 7)
    assert totals(place) == sum(range(1, 9))
    by_batch = {line["batch"]: line["rows"] for line in output(place)}
    for line in output(place):
        assert by_batch[line["batch"]] == line["rows"], "a batch that was repeated brought other rows"
    assert sorted(by_batch) == list(range(8))


def test_nobody_comes(rehearsals):
    incumbent = rehearsals.start_incumbent()
    end = rehearsals.rehearse(script(), rehearsal={"standbySeconds": 1})
    assert (end["reason"], end["exitCode"]) == ("StandbyExpired", 0), end["log"]
    assert end["rehearsal"]["outcome"] == "Passed"
    assert (incumbent.store / "run-2" / "queries" / "totals" / "state").exists(), "copied ahead"
    rehearsals.assert_untouched()
