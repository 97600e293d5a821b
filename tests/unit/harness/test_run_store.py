"""One client for all who ask of a run's store."""

from __future__ import annotations

import json
from dataclasses import replace

from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.runfile import parse_run_file
from tests.unit.harness.samples import REHEARSAL


def test_who_asks_for_the_same_store_shares_its_client():
    run_file = parse_run_file(json.dumps(REHEARSAL))
    activated = run_file.activated(run=4, attempt=1, epoch=8)
    assert store_of(run_file) is store_of(activated)


def test_another_place_or_another_way_there_is_another_store():
    run_file = parse_run_file(json.dumps(REHEARSAL))
    elsewhere = replace(run_file, store="s3://bucket/elsewhere")
    by_proxy = replace(elsewhere, spark_conf={"spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9"})
    assert len({id(store_of(one)) for one in (run_file, elsewhere, by_proxy)}) == 3
