"""Edits of a manifest."""

from __future__ import annotations

from tests.manifest_cases.builders import BadEdit, Manifest, a_job, a_savepoint

_RUNNING = {"run": {"number": 1, "revision": "abc"}}

BAD_EDITS: tuple[BadEdit, ...] = (
    BadEdit(
        "another location while a run exists",
        a_job(checkpoint={"location": "s3://streams/a"}),
        a_job(checkpoint={"location": "s3://streams/b"}),
        "spec.checkpoint.location",
        "StreamJob.location_stays",
        _RUNNING,
    ),
    BadEdit(
        "no location any more while a run exists",
        a_job(checkpoint={"location": "s3://streams/a"}),
        a_job(),
        "spec.checkpoint.location",
        "StreamJob.location_stays",
        _RUNNING,
    ),
    BadEdit(
        "a location at last while a run exists",
        a_job(),
        a_job(checkpoint={"location": "s3://streams/b"}),
        "spec.checkpoint.location",
        "StreamJob.location_stays",
        _RUNNING,
    ),
    BadEdit(
        "a savepoint of another job",
        a_savepoint(),
        a_savepoint(job={"name": "clicks"}),
        "spec.job",
        "StreamSavepointSpec.identity_stays",
    ),
    BadEdit(
        "a savepoint that turns into an import",
        a_savepoint(),
        a_savepoint(path="s3://streams/x"),
        "spec.path",
        "StreamSavepointSpec.identity_stays",
    ),
)

GOOD_EDITS: dict[str, tuple[Manifest, Manifest, Manifest]] = {
    "another location before the first run": (
        a_job(checkpoint={"location": "s3://streams/a"}),
        a_job(checkpoint={"location": "s3://streams/b"}),
        {},
    ),
    "another image while a run exists": (a_job(image="job:1"), a_job(image="job:2"), _RUNNING),
    "a savepoint that is pinned": (a_savepoint(), a_savepoint(pinned=True), {}),
}
