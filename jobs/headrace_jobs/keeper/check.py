"""Before the first driver of a job: is the store usable, and does an earlier lineage of the job lie there?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace_jobs.store import Store, is_seeded, newest_claim, newest_run


@dataclass(frozen=True)
class Lineage:
    """State that a StreamJob of the same namespace and name left behind, by the uid it had."""

    uid: str
    last_run: int
    written_at: float


def earlier_lineage(jobs: Store, *, job: str, own_uid: str, run: int) -> Lineage | None:
    """The newest of the others, or None where there is none or this run has already begun.

    `jobs` is the store at <location>/<namespace>, where every job has a directory.
    """
    own = f"{job}/{own_uid}/run-{run}"
    if newest_claim(jobs, own) is not None or is_seeded(jobs, own):
        return None
    others = [name.rstrip("/") for name in jobs.children(job) if name.endswith("/")]
    found = (lineage for uid in others if uid != own_uid for lineage in _lineage(jobs, job, uid))
    return max(found, key=lambda lineage: lineage.written_at, default=None)


def _lineage(jobs: Store, job: str, uid: str) -> Iterator[Lineage]:
    home = f"{job}/{uid}"
    number = newest_run(jobs, home)
    if number is not None:
        claims = jobs.list(f"{home}/run-{number}/_attempts/")
        yield Lineage(uid, number, max((claim.modified for claim in claims), default=0.0))
