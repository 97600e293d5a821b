"""Every object as a whole: a change of any of them is seen in review.

After a change that is meant: HEADRACE_REWRITE_GOLDEN=1 python -m pytest tests/unit/manifests
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.api.lifecycle import Savepoints
from headrace.core.actions import RestoreRun, SeedRun
from headrace.core.manifests import (
    Deletion,
    DriverAttempt,
    Lookout,
    OrphanHunt,
    RunPin,
    SavepointWork,
    Seeding,
    collector_pod,
    config_map,
    deletion_pod,
    disruption_budget,
    driver_pod,
    driver_service,
    lookout_pod,
    run_pin,
    savepoint_pod,
    seeding_pod,
    stream_savepoint,
    token_secret,
)
from tests.unit.manifests.samples import FULL, PLATFORM, S3_CODE, an_attempt

GOLDEN = Path(__file__).parent / "golden"
ATTEMPTS = {
    "typical": an_attempt(),
    "full": an_attempt(**FULL),
    "first-driver": an_attempt(check_store=True),
    "s3-code": an_attempt(**S3_CODE),
    "config-map-code": an_attempt(
        application={"configMap": {"name": "clicks-code"}}, code={"job.py": "print('clicks')\n"}
    ),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_objects_of_an_attempt(name: str):
    compare(name, objects(ATTEMPTS[name]))


def test_the_objects_of_a_run():
    attempt = an_attempt(**FULL)
    who = {"namespace": attempt.namespace, "job": attempt.job, "job_uid": attempt.job_uid}
    pin = RunPin(
        **who,
        run=4,
        revision="0011223344556677",
        code_digest="c0de",
        spec=attempt.spec,
        location="s3://acme-streams/checkpoints",
        code={"job.py": "x\n"},
    )
    seeding = Seeding(
        **who,
        spec=attempt.spec,
        lineages=attempt.store.rpartition("/")[0],
        revision=pin.revision,
        action=SeedRun(from_uid=attempt.job_uid, from_run=3, to_run=4),
        number=1,
    )
    restoring = replace(
        seeding,
        action=RestoreRun(path="s3://old/checkpoints/clicks", to_run=4, lineage="auto", query="clicks"),
    )
    deletion = Deletion(**who, spec=attempt.spec, lineages=seeding.lineages, generation=7, number=1)
    pods = [
        seeding_pod(seeding, PLATFORM),
        seeding_pod(restoring, PLATFORM),
        deletion_pod(deletion, PLATFORM),
    ]
    compare("run", [run_pin(pin), *pods])


def test_the_objects_of_a_job():
    attempt = an_attempt()
    who = {"namespace": attempt.namespace, "job": attempt.job, "job_uid": attempt.job_uid}
    compare("job", [disruption_budget(**who)])


def test_the_lookout_of_a_sleeping_job():
    attempts = (an_attempt(), an_attempt(**FULL))
    compare(
        "lookout",
        [lookout_pod(Lookout(attempt=one, number=3, every_seconds=60), PLATFORM) for one in attempts],
    )


def compare(name: str, made: list[dict[str, Any]]) -> None:
    # By way of JSON: two equal parts are written out twice, not as an alias of each other.
    plain = json.loads(json.dumps(made))
    found = yaml.safe_dump_all(plain, sort_keys=False, width=110)
    file = GOLDEN / f"{name}.yaml"
    if os.environ.get("HEADRACE_REWRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(found)
    assert found == file.read_text()


def test_the_objects_of_a_savepoint():
    attempt = an_attempt(**FULL)
    work = {
        "namespace": attempt.namespace,
        "job": attempt.job,
        "savepoint": "nightly",
        "savepoint_uid": "5a7e9014-1111-2222-3333-444455556666",
        "spec": attempt.spec,
        "made_from": "3-1",
        "number": 1,
    }
    store = "s3://acme-streams/checkpoints/shop/clicks"
    place = (f"--store={store}", "--savepoint=_savepoints/nightly-5a7e9014")
    taking = SavepointWork(task="take", arguments=("savepoint", *place), limit_seconds=3630, **work)
    removing = SavepointWork(task="discard", arguments=("discard", *place), **work)
    hunt = OrphanHunt(
        namespace=attempt.namespace,
        job=attempt.job,
        job_uid=attempt.job_uid,
        spec=attempt.spec,
        place=store,
        asked="0011223344",
        mode="dry-run",
    )
    compare(
        "savepoint",
        [
            stream_savepoint(
                "clicks-20260131-1200",
                namespace=attempt.namespace,
                job=attempt.job,
                cause="Schedule",
                policy=Savepoints.parse({"verify": "State", "maxCopyRate": "100Mi"}),
            ),
            savepoint_pod(taking, PLATFORM),
            savepoint_pod(removing, PLATFORM),
            collector_pod(hunt, PLATFORM),
        ],
    )


def objects(attempt: DriverAttempt) -> list[dict[str, Any]]:
    files = config_map(attempt, PLATFORM)
    # As objects, not as text in text: so the golden file can be read and compared line by line.
    files["data"] = {
        name: json.loads(text) if name.endswith(".json") else text for name, text in files["data"].items()
    }
    return [
        token_secret(attempt, token="not-a-real-token"),
        files,
        driver_service(attempt),
        driver_pod(attempt, PLATFORM),
    ]
