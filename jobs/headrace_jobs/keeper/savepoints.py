"""The keeper's work on savepoints: `savepoint`, `restore`, `verify`, `savepoints`, `discard`, `collect`.

Paths are relative to --store, which is that of a job (<location>/<namespace>/<name>): `_savepoints/<id>`
and `<uid>/run-<n>`. Only `restore` and `savepoints` may look elsewhere.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from headrace_jobs.keeper.progress import telling_progress
from headrace_jobs.store import Store, open_store
from headrace_jobs.store.errors import (
    LineageError,
    NoRightsError,
    SavepointError,
    SeedError,
    WrongEndpointError,
)
from headrace_jobs.store.interface import OpenUpload
from headrace_jobs.store.s3_options import S3Options
from headrace_jobs.store.savepoints import (
    SAVEPOINTS,
    About,
    Found,
    Manifest,
    Orphan,
    Pace,
    Progress,
    Wish,
    collect,
    delete_savepoint,
    find_savepoints,
    list_savepoints,
    orphans,
    read_manifest,
    record,
    recorded,
    seed_from,
    take_savepoint,
    verify_savepoint,
)
from headrace_jobs.store.uploads import abort_broken_off_uploads, broken_off_uploads

log = logging.getLogger("headrace")

Result = tuple[int, dict[str, Any]]
_REFUSED, _FAILED = 64, 66
_TELL_SECONDS = 10.0
# Kubernetes keeps this much of a container's last words; the rest lies in the manifest.
_LARGEST_RESULT = 3500
_UPLOAD_RIGHTS = (
    "the job's credentials need s3:ListBucketMultipartUploads, s3:ListMultipartUploadParts and "
    "s3:AbortMultipartUpload, and the server must know these requests"
)


class _TimeIsUpError(SavepointError):
    reason = "TimeLimit"


def add_tasks(tasks: Any, common: argparse.ArgumentParser) -> None:
    """Registers the subcommands. `common` brings --store, --result and how to reach S3."""
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--savepoint", required=True, help=f"{SAVEPOINTS}/<id>")
    rate = argparse.ArgumentParser(add_help=False)
    rate.add_argument("--max-bytes-per-second", type=int)
    rate.add_argument("--max-objects-per-second", type=int)

    taking = _task(tasks, "savepoint", take, [common, where, rate], "copy a run's state at its last batch")
    taking.add_argument("--from", dest="run", required=True, help="<uid>/run-<n>")
    taking.add_argument("--owner", required=True, help="uid of the StreamSavepoint: no other may finish it")
    taking.add_argument("--job", default="", help="<namespace>/<name>, for whoever finds it later")
    taking.add_argument("--cause", default="Manual")
    taking.add_argument("--spec-digest")
    taking.add_argument("--time-limit-seconds", type=float)
    taking.add_argument("--progress-port", type=int, help="where to tell how far it is; nowhere without")

    restoring = _task(
        tasks, "restore", restore, [common, rate], "make a run from a savepoint or a checkpoint"
    )
    restoring.add_argument(
        "--from", "--savepoint", dest="source", required=True, help="its URL, or a path below --store"
    )
    restoring.add_argument("--to", dest="run", required=True, help="<uid>/run-<n>")
    restoring.add_argument("--lineage", choices=get_args(Wish), default="auto")
    restoring.add_argument("--job", default="", help="<namespace>/<name>: another job's makes a fork")
    restoring.add_argument("--query", help="the name of the query, for a plain Spark checkpoint")

    verifying = _task(tasks, "verify", verify, [common, where], "is a savepoint whole?")
    verifying.add_argument("--level", choices=["Objects", "State"], default="Objects")

    finding = _task(tasks, "savepoints", find, [common], "list what lies in the store")
    finding.add_argument("--everywhere", action="store_true", help="--store is a location, not that of a job")
    finding.add_argument("--fitting", action="store_true", help="the newest, as many as last words hold")

    discarding = _task(tasks, "discard", discard, [common, where], "remove a savepoint")
    discarding.add_argument("--why", default="asked for")

    collecting = _task(tasks, "collect", collect_orphans, [common], "remove what no savepoint is or will be")
    collecting.add_argument("--older-than-hours", type=float, default=24.0)
    collecting.add_argument("--dry-run", action="store_true")
    collecting.add_argument("--known", action="append", default=[], help="a savepoint that somebody names")


def _task(
    tasks: Any,
    name: str,
    function: Callable[[argparse.Namespace, S3Options], Result],
    parents: list[argparse.ArgumentParser],
    description: str,
) -> argparse.ArgumentParser:
    parser = tasks.add_parser(name, parents=parents, help=description)
    parser.set_defaults(task=functools.partial(_answered, function))
    return parser


def _answered(
    function: Callable[[argparse.Namespace, S3Options], Result], arguments: argparse.Namespace, s3: S3Options
) -> Result:
    """What is wrong with a savepoint is not the store's fault, and must not read like it."""
    try:
        return function(arguments, s3)
    except LineageError as error:
        return _REFUSED, {"reason": "Refused", "errorClass": error.reason, "message": str(error)}
    except (SavepointError, SeedError) as error:
        return _FAILED, {"reason": error.reason, "errorClass": error.reason, "message": str(error)}


def take(arguments: argparse.Namespace, s3: S3Options) -> Result:
    about = About(
        owner=arguments.owner,
        job=arguments.job,
        cause=arguments.cause,
        spec_digest=arguments.spec_digest,
    )
    with telling_progress(arguments.progress_port, owner=arguments.owner) as page:
        manifest = take_savepoint(
            open_store(arguments.store, s3),
            run=arguments.run,
            savepoint=arguments.savepoint,
            about=about,
            now=datetime.now(UTC),
            pace=_pace(arguments),
            tell=_teller(arguments.time_limit_seconds, page),
        )
    return 0, {"reason": "Completed", "message": "", "savepoint": _fitting(manifest)}


def restore(arguments: argparse.Namespace, s3: S3Options) -> Result:
    seed = seed_from(
        arguments.source,
        store=arguments.store,
        run=arguments.run,
        lineage=arguments.lineage,
        job=arguments.job,
        query=arguments.query,
        s3=s3,
        pace=_pace(arguments),
        tell=_teller(None, lambda _: None),
    )
    return 0, {"reason": "Completed", "message": "", "seed": asdict(seed)}


def verify(arguments: argparse.Namespace, s3: S3Options) -> Result:
    store = open_store(arguments.store, s3)
    found = verify_savepoint(store, arguments.savepoint, level=arguments.level)
    record(store, arguments.savepoint, found, now=datetime.now(UTC))
    told = {"level": found.level, "message": found.message}
    if found.problems:
        return _FAILED, {"reason": "SavepointDamaged", "message": found.message, "verified": told}
    # Also what it holds: who imports it knows nothing but its path.
    manifest = read_manifest(store, arguments.savepoint)
    return 0, {"reason": "Completed", "message": "", "verified": told, "savepoint": _fitting(manifest)}


def find(arguments: argparse.Namespace, s3: S3Options) -> Result:
    store = open_store(arguments.store, s3)
    found = list(find_savepoints(store)) if arguments.everywhere else list_savepoints(store)
    if not arguments.fitting:
        return 0, {"reason": "Completed", "message": "", "savepoints": [_line(store, one) for one in found]}
    # Those without a manifest last: nobody can start from them.
    found.sort(key=lambda one: one.manifest.taken_at if one.manifest is not None else "", reverse=True)
    told: dict[str, Any] = {"reason": "Completed", "message": f"{len(found)} savepoints", "savepoints": []}
    for one in found:
        told["savepoints"].append(_line(store, one))
        if len(json.dumps(told)) > _LARGEST_RESULT:
            told["savepoints"].pop()
            told["message"] += f", here the newest {len(told['savepoints'])}: look below one job for more"
            break
    return 0, told


def _line(store: Store, found: Found) -> dict[str, Any]:
    if found.manifest is None:
        return {"path": found.path, "problem": found.problem}
    manifest = found.manifest
    return {
        "path": found.path,
        "job": manifest.job,
        "takenAt": manifest.taken_at,
        "cause": manifest.cause,
        "batches": {query.name: query.batch for query in manifest.queries},
        "objects": len(manifest.objects),
        "bytes": manifest.size_bytes,
        "verified": recorded(store, found.path).level,
    }


def discard(arguments: argparse.Namespace, s3: S3Options) -> Result:
    if not arguments.savepoint.startswith(f"{SAVEPOINTS}/"):
        raise SavepointError(f"'{arguments.savepoint}' is not below {SAVEPOINTS}/: nothing else is removed")
    delete_savepoint(open_store(arguments.store, s3), arguments.savepoint, why=arguments.why)
    return 0, {"reason": "Completed", "message": ""}


def collect_orphans(arguments: argparse.Namespace, s3: S3Options) -> Result:
    store, dry = open_store(arguments.store, s3), arguments.dry_run
    age = {"older_than": timedelta(hours=arguments.older_than_hours), "now": datetime.now(UTC)}
    found = (orphans if dry else collect)(store, **age)
    uploads, unknown = _broken_off(store, dry=dry, **age)
    # Whole ones that nobody names cost as much. They may be all that is left of a job: they stay.
    whole = [one for one in list_savepoints(store) if one.manifest is not None]
    nameless = [one for one in whole if one.path.removeprefix(f"{SAVEPOINTS}/") not in arguments.known]
    told = {"reason": "Completed", "message": _cost(found, uploads, dry=dry), **_report(found, uploads)}
    told["message"] += unknown
    told["savepoints"] = [_line(store, one) for one in nameless]
    if nameless:
        size = sum(one.manifest.size_bytes for one in nameless if one.manifest is not None)
        told["message"] += f"; {len(nameless)} savepoints that no object names, with {size} bytes, stay"
    while len(json.dumps(told)) > _LARGEST_RESULT:
        longest = max(("orphans", "uploads", "savepoints"), key=lambda part: len(told[part]))
        told[longest] = told[longest][:-1]
    return 0, told


def _broken_off(store: Store, *, dry: bool, **age: Any) -> tuple[list[OpenUpload], str]:
    """And what to add where they cannot be known: that is no reason to leave everything else."""
    look = broken_off_uploads if dry else abort_broken_off_uploads
    try:
        return look(store, **age), ""
    except (NoRightsError, WrongEndpointError) as error:
        log.warning("uploads that were broken off: %s", error)
        return [], f"; uploads that were broken off could not be looked for: {_UPLOAD_RIGHTS}"


def _report(found: list[Orphan], uploads: list[OpenUpload]) -> dict[str, Any]:
    return {
        "objects": sum(one.objects for one in found),
        "bytes": sum(one.size_bytes for one in found) + sum(one.size for one in uploads),
        "orphans": [asdict(one) for one in found],
        "uploads": [{"key": one.key, "size_bytes": one.size} for one in uploads],
    }


def _cost(found: list[Orphan], uploads: list[OpenUpload], *, dry: bool) -> str:
    told = _report(found, [])
    verb = "would be removed" if dry else "removed"
    message = f"{len(found)} orphans with {told['objects']} objects and {told['bytes']} bytes {verb}"
    if uploads:
        size = sum(one.size for one in uploads)
        aborted = "would be aborted" if dry else "aborted"
        message += f"; {len(uploads)} uploads that were broken off, with {size} bytes, {aborted}"
    return message


def _pace(arguments: argparse.Namespace) -> Pace:
    return Pace(
        bytes_per_second=arguments.max_bytes_per_second, objects_per_second=arguments.max_objects_per_second
    )


def _teller(limit_seconds: float | None, page: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Says how far it is, in the log now and then, and ends it when its time is up."""
    began = time.monotonic()
    told = began

    def tell(progress: Progress) -> None:
        nonlocal told
        now = time.monotonic()
        page(progress)
        if limit_seconds is not None and now - began > limit_seconds:
            raise _TimeIsUpError(
                f"it took longer than its time limit of {limit_seconds:g} s: raise timeLimit or maxCopyRate"
            )
        if now - told >= _TELL_SECONDS:
            told = now
            log.warning(
                "copied %d of %d objects, %d of %d bytes",
                progress.objects_done,
                progress.objects,
                progress.bytes_done,
                progress.bytes,
            )

    return tell


def _fitting(manifest: Manifest) -> dict[str, Any]:
    """The manifest without its objects; without the longest offsets where there is no room for them, and of
    very many queries the first ones. It says what it leaves out."""
    told = manifest.summary()
    bare: list[str] = []
    for query in sorted(told["queries"], key=lambda one: len(json.dumps(one["offsets"])), reverse=True):
        if len(json.dumps(told)) <= _LARGEST_RESULT:
            break
        query["offsets"] = {}
        bare.append(query["name"])
    everything = len(told["queries"])
    while len(json.dumps(told)) > _LARGEST_RESULT and told["queries"]:
        told["queries"] = told["queries"][:-1]
        told["more_queries"] = everything - len(told["queries"])
    named = {query["name"] for query in told["queries"]}
    return {**told, "offsets_left_out": [name for name in bare if name in named]}
