"""Ten upgrades in a row, two of them bad, the operator killed once in each step: the output is exact.

A producer that numbers its records, and repeats some, never stops. The job drops repeats, counts event-time
windows and writes them through a ledger in PostgreSQL (examples/exactly-once). The checker shares no code
with it: tests/e2e/ledger_check.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.provider import Cluster
from tests.e2e.install import Installed
from tests.e2e.killing import KilledInEachStep
from tests.e2e.ledger import JOB, UNFIT, Ledger
from tests.e2e.services import Services
from tests.e2e.streamjobs import Job, edited
from tests.e2e.testimages import LEDGER, SERVICES

pytestmark = [pytest.mark.full, pytest.mark.timeout(900, func_only=True)]

CODE = "exactly-once-code"
POLICY = {"strategy": "Rehearsed", "verifyWindow": "10s", "startTimeout": "5m"}


# Another plan behind the state.
FILTERED = edited(JOB, '.alias("total"))', '.alias("total"))\n    .where("n > 0")')
# Warm, then cold: see core/upgrade.py.
STEPS = ("Rehearsing", "Draining", "Activating", "Seeding", "Starting", "Verifying")


@dataclass(frozen=True)
class Upgrade:
    what: str
    spec: dict[str, Any] = field(default_factory=dict)
    args: tuple[str, ...] | None = None
    code: str | None = None
    ends: str = "Promoted"


UPGRADES = [
    Upgrade("args", args=("--label", "2")),
    Upgrade("conf", spec={"sparkConf": {"spark.task.maxFailures": "6"}}),
    Upgrade("code-that-does-not-fit", code=UNFIT, ends="Refused"),
    Upgrade("code", code=FILTERED, args=("--label", "3")),
    Upgrade("image", spec={"image": SERVICES.name}),
    Upgrade("executor-memory", spec={"executors": {"memory": "1200Mi"}}),
    Upgrade("a-table-that-is-not-there", args=("--table", "no_such_table"), ends="RolledBack"),
    Upgrade("args-again", args=("--label", "4")),
    Upgrade("driver-memory-cold", spec={"driver": {"memory": "1600Mi"}, "upgrade": {"strategy": "Cold"}}),
    Upgrade("image-back", spec={"image": LEDGER.name, "upgrade": {"strategy": "Rehearsed"}}),
]


@pytest.fixture(scope="module")
def images(cluster: Cluster) -> dict[str, str]:
    """Two that differ, and in both a job finds Spark and a driver for PostgreSQL."""
    loaded = {image.name: image.to_load() for image in (LEDGER, SERVICES)}
    for image in loaded.values():
        cluster.load(image)
    return {name: image.reference for name, image in loaded.items()}


@pytest.fixture(scope="module")
def ledger(services: Services) -> Iterator[Ledger]:
    ledger = Ledger(services, "numbers")
    ledger.start_producer()
    yield ledger
    ledger.stop_producer()


@pytest.fixture(scope="module")
def job(job_named: Callable[..., Job], ledger: Ledger, images: dict[str, str]) -> Iterator[Job]:
    job = job_named("numbers")
    job.write_code(CODE, JOB)
    job.apply(ledger.spec(code=CODE, image=images[LEDGER.name], upgrade=POLICY))
    job.wait_ready(seconds=400)
    wait_stable(job, 1)
    yield job
    job.delete()


@pytest.fixture(scope="module")
def killer(job: Job, operator: Installed) -> Iterator[KilledInEachStep]:
    with KilledInEachStep(job, operator) as killer:
        yield killer


def wait_stable(job: Job, run: int, *, seconds: float = 600) -> None:
    def stable() -> bool:
        status = job.status()
        return (status.get("lastStable") or {}).get("run") == run and not status.get("operation")

    job.wait(lambda: stable() and job.is_ready(), what=f"run {run} to be stable", seconds=seconds)


@pytest.mark.parametrize("upgrade", UPGRADES, ids=lambda upgrade: upgrade.what)
def test_upgrade(
    job: Job, ledger: Ledger, images: dict[str, str], killer: KilledInEachStep, upgrade: Upgrade
):
    before, driver = job.status()["lastStable"]["run"], job.driver()["metadata"]["uid"]
    spec = dict(upgrade.spec)
    if "image" in spec:
        spec["image"] = images[spec["image"]]
    if upgrade.args is not None:
        spec["application"] = {"args": ledger.args(*upgrade.args)}
    if upgrade.code is not None:
        job.write_code(CODE, upgrade.code)
    if spec:
        job.edit(spec)
    match upgrade.ends:
        case "Refused":
            job.wait_reason("RehearsalFailed", kind="Stalled", seconds=600)
            assert "STATE_STORE" in job.reason("Rehearsed")
            assert job.driver()["metadata"]["uid"] == driver
        case "RolledBack":
            job.wait_reason("RolledBack", kind="Stalled", seconds=600)
            wait_stable(job, before + 2)
        case _:
            wait_stable(job, before + 1)
    ended = {entry["run"]: entry["outcome"] for entry in reversed(job.status()["history"])}
    assert ended[before if upgrade.ends == "Promoted" else before + 1] == (
        "Replaced" if upgrade.ends == "Promoted" else upgrade.ends
    )


def test_the_operator_was_killed_in_every_step(killer: KilledInEachStep):
    assert {step for kind, step in killer.in_steps if kind == "Upgrade"} == set(STEPS), killer.last_fault
    assert {"Seeding", "Starting", "Verifying"} <= {
        step for kind, step in killer.in_steps if kind == "Rollback"
    }


def test_nothing_is_lost_and_nothing_repeated(ledger: Ledger, job: Job):
    ledger.stop_producer()
    verdict = ledger.wait_exact()
    assert verdict.lost_or_repeated == 0
    assert verdict.windows > 100
    # Each good version wrote; one that was refused or rolled back did not.
    assert ledger.labels() == {"1", "2", "3", "4"}
    # All under one lineage: nothing was made again.
    assert len({one.lineage for one in ledger.noted()}) == 1
