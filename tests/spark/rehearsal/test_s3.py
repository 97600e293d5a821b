"""Rehearsal and handover on a real S3 server: the same protocol, another store."""

from __future__ import annotations

import json

import pytest

from headrace_jobs.jvm.jars import connector_jars
from headrace_jobs.store import last_batches, open_store
from headrace_jobs.store.s3_options import spark_conf
from tests.spark.checkpoint.conftest import s3_keys, s3_server
from tests.spark.harness.conftest import wait_for
from tests.spark.rehearsal.conftest import SUM, in_phase, output, put_orders, script

__all__ = ["s3_keys", "s3_server"]

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]  # several JVMs each


def test_a_candidate_rehearses_and_takes_over_on_s3(rehearsals, s3_server):
    place, options = rehearsals.place, s3_server.options()
    url = f"s3://{s3_server.new_bucket()}/shop/orders/uid"
    jars = {"spark.jars": ",".join(map(str, connector_jars("s3a")))}
    store, here = open_store(url, options), {"store": url, "spark_conf": spark_conf(options) | jars}
    put_orders(place, *range(5))
    incumbent = rehearsals.start(script(), **here)
    incumbent.wait_for_batch("totals", 4)
    wait_for(lambda: "totals.json" in store.children("run-1/_plans"), "the meaning is not noted")

    changed = rehearsals.rehearse(script(SUM.replace("sum", "max")), **here)
    assert changed["reason"] == "MeaningChanged", changed["log"]
    assert changed["rehearsal"]["differences"] == ["query totals: sum(amount) became max(amount)"]
    assert changed["rehearsal"]["queries"]["totals"]["replayed"] == [2, 3, 4]
    assert changed["logFile"] is None or changed["logFile"].startswith(f"{url}/rehearsal-2/_logs/")

    text = script(SUM + '.where("total > 0")')
    candidate = rehearsals.start_candidate(text, rehearsal={"standbySeconds": 600}, **here)
    in_phase(candidate, "Standby")
    assert store.children("rehearsal-2/queries") == []
    put_orders(place, 5)
    incumbent.wait_for_batch("totals", 5)
    incumbent.call("POST", "/v1/drain")
    assert incumbent.end()["reason"] == "Drained"
    put_orders(place, 6)
    order = json.dumps({"run": 2, "attempt": 1, "epoch": 2}).encode()
    assert candidate.call("POST", "/v1/activate", order)[0] == 202
    candidate.wait_for_batch("totals", 6)
    candidate.call("POST", "/v1/drain")
    assert candidate.end()["reason"] == "Drained", candidate.log()
    assert last_batches(store, 2)["totals"] == (6, 6)
    assert [(line["run"], line["batch"]) for line in output(place)] == [
        *((1, batch) for batch in range(6)),
        (2, 6),
    ]
    assert json.loads(output(place)[-1]["rows"][0])["total"] == sum(range(1, 8))
