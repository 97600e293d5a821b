"""StreamSavepoints as the API shows them -> savepoints as the planners know them. From the cache alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast, get_args

from pydantic import ValidationError

from headrace.api import (
    RESTORE_ANNOTATION,
    SAVEPOINT_FINALIZER,
    VERIFY_ANNOTATION,
    Operation,
    StreamJobSpec,
    StreamJobStatus,
    StreamSavepoint,
)
from headrace.core.collecting import digest_of
from headrace.core.gates import upgrade_savepoint
from headrace.core.manifests import Platform, read_run_pin
from headrace.core.manifests.keeper_pod import KEEPER_CONTAINER, TRY_LABEL
from headrace.core.manifests.ownership import ASKED_LABEL, RUN_LABEL, SAVEPOINT_UID_LABEL, TASK_LABEL
from headrace.core.model import Job, Problem
from headrace.core.restarts import found_earlier_lineage, refused_its_start
from headrace.core.savepoint_model import (
    KeeperPhase,
    KeeperTry,
    RunToSave,
    SavedJob,
    Savepoint,
    SavepointObserved,
    Task,
)
from headrace.core.savepoints import Cause, Known, Phase
from headrace.core.start import restored_name
from headrace.core.validate import invalid_spec, is_paused, validate
from headrace.kube.cache import Cache, JobKey
from headrace.kube.client import Object
from headrace.kube.found import is_leaving, is_owned, label, name_of, uid_of
from headrace.kube.memory import Memory
from headrace.kube.pods import finished_at, is_lost, keeper_result, waiting_of
from headrace.kube.resources import CONFIG_MAPS, PODS, STREAM_SAVEPOINTS

_TASKS: tuple[Task, ...] = get_args(Task)
# What the API server says of anything that is to be made in a namespace that is being deleted.
_NAMESPACE_ENDS = "because it is being terminated"


@dataclass(frozen=True, kw_only=True)
class SavepointSight:
    observed: SavepointObserved
    pods: Mapping[Task, tuple[Object, ...]]
    """Of each task, oldest first."""


def read_savepoint(manifest: Object) -> Savepoint | Problem:
    """The API server's schema has accepted it; what is left is version skew."""
    metadata = manifest["metadata"]
    try:
        spec = StreamSavepoint.parse({key: value for key, value in manifest.items() if key != "status"}).spec
    except ValidationError as error:
        return invalid_spec(error)
    annotations: dict[str, str] = metadata.get("annotations") or {}
    return Savepoint(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        spec=spec,
        paused=is_paused(manifest),
        check=annotations.get(VERIFY_ANNOTATION),
        held=SAVEPOINT_FINALIZER in (metadata.get("finalizers") or ()),
        deleting=is_leaving(manifest),
    )


def look_at_savepoint(
    cache: Cache, platform: Platform, manifest: Object, savepoint: Savepoint, *, memory: Memory
) -> SavepointSight:
    key = (savepoint.namespace, savepoint.spec.job.name)
    pods: dict[Task, tuple[Object, ...]] = {
        task: tuple(_tries(cache, key, savepoint.uid, task)) for task in _TASKS
    }
    tries: dict[Task, list[KeeperTry]] = {
        task: [_try(pod, memory) for pod in asked_for(savepoint, task, each)] for task, each in pods.items()
    }
    refused = memory.keeper_problems.get(savepoint.uid)
    observed = SavepointObserved(
        job=_saved_job(cache, platform, key, memory),
        tries=tries,
        under_way=_under_way(savepoint.uid, manifest.get("status") or {}, memory),
        in_use_by=_in_use_by(cache, _beginners(cache, savepoint.namespace), manifest),
        in_use_elsewhere=_in_use_elsewhere(_beginners_elsewhere(cache, savepoint.namespace), manifest),
        restored_by=_restored_by(cache, manifest),
        refused=refused,
        namespace_ends=refused is not None and _NAMESPACE_ENDS in refused.message,
    )
    return SavepointSight(observed=observed, pods=pods)


def _under_way(uid: str, status: Mapping[str, Any], memory: Memory) -> timedelta:
    if not status.get("startedAt") or status.get("completedAt") or status.get("failedAt"):
        memory.taking_since.pop(uid, None)
        return timedelta(0)
    return memory.lasting(memory.taking_since, uid)


def known_savepoints(cache: Cache, job: JobKey) -> tuple[Known, ...]:
    """Of a job, but those that are on their way out. One that is in use stays until it is not any more."""
    own = cache.children(STREAM_SAVEPOINTS, job)
    if not own:
        return ()
    beginners, elsewhere = _beginners(cache, job[0]), _beginners_elsewhere(cache, job[0])
    used = [(one, _in_use_by(cache, beginners, one) + _in_use_elsewhere(elsewhere, one)) for one in own]
    return tuple(_known(one, in_use_by=users) for one, users in used if users or not is_leaving(one))


# ---- the job ------------------------------------------------------------------------------------------


def _saved_job(cache: Cache, platform: Platform, key: JobKey, memory: Memory) -> SavedJob | Problem | None:
    manifest = cache.job(key)
    if manifest is None:
        return None
    status = manifest.get("status") or {}
    spec = _spec(cache, platform, manifest, memory, status.get("run") or {})
    if isinstance(spec, Problem):
        return spec
    return SavedJob(
        spec=spec,
        generation=manifest["metadata"]["generation"],
        run=_run_to_save(StreamJobStatus.parse(status)),
    )


def _run_to_save(status: StreamJobStatus) -> RunToSave | None:
    """The run that has the state: while a candidate takes over, that is the one before."""
    run = status.run
    if run is None or run.path is None:
        return None
    activation = run.attempt.activation if run.attempt is not None else None
    if activation is None or activation.seeded:
        return RunToSave(number=run.number, revision=run.revision, path=run.path)
    before = next((one for one in status.history if one.run == activation.from_run), None)
    return RunToSave(
        number=activation.from_run,
        revision=before.revision if before is not None else run.revision,
        path=f"{run.path.rpartition('/')[0]}/run-{activation.from_run}",
    )


def _spec(
    cache: Cache, platform: Platform, manifest: Object, memory: Memory, run: Mapping[str, Any]
) -> StreamJobSpec | Problem:
    """As it stands; where that cannot be taken, as the run goes on with."""
    known = (uid_of(manifest), manifest["metadata"]["generation"])
    if known in memory.specs:
        return memory.specs[known]
    checked = validate(manifest, default_location=platform.checkpoint_location or run.get("path"))
    if isinstance(checked, Job):
        return checked.spec
    for thing in cache.children(CONFIG_MAPS, (manifest["metadata"]["namespace"], name_of(manifest))):
        number = label(thing, RUN_LABEL)
        if "data" in thing and number == str(run.get("number")) and is_owned(thing, uid_of(manifest)):
            pin = read_run_pin(thing, run=int(number))
            return pin.spec if pin is not None else checked
    return checked


# ---- who starts from it -------------------------------------------------------------------------------


def _beginners(cache: Cache, namespace: str) -> list[Object]:
    """Jobs that are to begin with a savepoint, or to go back to one, and have not: mostly none."""
    found: list[Object] = []
    for job in cache.jobs_in(namespace):
        status, asked = job.get("status") or {}, _asked(job)
        if (asked and asked != status.get("restored")) or (job["spec"].get("startFrom") and _begins(status)):
            found.append(job)
    return found


def _beginners_elsewhere(cache: Cache, namespace: str) -> list[Object]:
    """In other namespaces nobody can name a StreamSavepoint of this one: they name the path of its copy."""
    return [
        job
        for job in cache.jobs_outside(namespace)
        if (job["spec"].get("startFrom") or {}).get("path") and _begins(job.get("status") or {})
    ]


def _in_use_elsewhere(beginners: Iterable[Object], savepoint: Object) -> tuple[str, ...]:
    path = (savepoint.get("status") or {}).get("path")
    users = (job["metadata"] for job in beginners if job["spec"]["startFrom"]["path"] == path)
    return tuple(sorted(f"{one['namespace']}/{one['name']}" for one in users))


def _begins(status: Mapping[str, Any]) -> bool:
    """It has no run yet, or the one it has never began: it starts over when that is mended."""
    if not status.get("run") or not status.get("lastTermination"):
        return not status.get("run")
    parsed = StreamJobStatus.parse(dict(status))
    return found_earlier_lineage(parsed) or refused_its_start(parsed)


def _in_use_by(cache: Cache, beginners: Iterable[Object], savepoint: Object) -> tuple[str, ...]:
    """Those who are to begin with it, and the job whose upgrade it was taken for."""
    users = {name_of(job) for job in beginners if _is_awaited_by(job, savepoint)}
    own_job = savepoint["spec"]["job"]["name"]
    job = cache.job((savepoint["metadata"]["namespace"], own_job))
    operation = (job.get("status") or {}).get("operation") if job is not None else None
    status = savepoint.get("status") or {}
    # What is deleted before it is whole will never be of use: the upgrade takes another.
    lost = status.get("failedAt") or (is_leaving(savepoint) and not status.get("completedAt"))
    if job is not None and operation and not lost and savepoint["spec"].get("cause") == "Upgrade":
        own = upgrade_savepoint(name_of(job), uid_of(job), Operation.parse(operation))
        users |= {own_job} if own == name_of(savepoint) else set()
    return tuple(sorted(users))


def _is_awaited_by(job: Object, savepoint: Object) -> bool:
    name, path = name_of(savepoint), (savepoint.get("status") or {}).get("path")
    status, start = job.get("status") or {}, job["spec"].get("startFrom") or {}
    asked = _asked(job)
    if asked != status.get("restored") and restored_name(asked) == name:
        return True
    named = start.get("savepoint") == name or (path is not None and start.get("path") == path)
    return named and _begins(status)


def _asked(job: Object) -> str:
    return (job["metadata"].get("annotations") or {}).get(RESTORE_ANNOTATION, "")


def _restored_by(cache: Cache, savepoint: Object) -> str | None:
    """A job whose run began with it, and whose queries are active or done."""
    path = (savepoint.get("status") or {}).get("path")
    for job in cache.jobs_in(savepoint["metadata"]["namespace"]):
        status = job.get("status") or {}
        if path is None or (status.get("run") or {}).get("seededFrom") != path:
            continue
        for one in status.get("conditions") or ():
            well = one["status"] == "True" and one["reason"] in ("Running", "Completed")
            if one["type"] == "Ready" and well:
                return name_of(job)
    return None


# ---- keeper pods --------------------------------------------------------------------------------------


def _tries(cache: Cache, key: JobKey, uid: str, task: Task) -> list[Object]:
    mine = [
        pod
        for pod in cache.children(PODS, key)
        if label(pod, SAVEPOINT_UID_LABEL) == uid and label(pod, TASK_LABEL) == task
    ]
    return sorted(mine, key=lambda pod: int(label(pod, TRY_LABEL)))


def asked_for(savepoint: Savepoint, task: Task, pods: Iterable[Object]) -> list[Object]:
    """Of checks, those of the request that stands: an earlier one may have left its pod."""
    wanted = digest_of(savepoint.check or "")
    return [pod for pod in pods if task != "check" or label(pod, ASKED_LABEL) == wanted]


def _try(pod: Object, memory: Memory) -> KeeperTry:
    status = pod.get("status", {})
    phase = {
        "Succeeded": KeeperPhase.SUCCEEDED,
        "Failed": KeeperPhase.FAILED,
        "Running": KeeperPhase.RUNNING,
    }.get(status.get("phase"), KeeperPhase.WAITING)
    ended = phase in (KeeperPhase.SUCCEEDED, KeeperPhase.FAILED)
    waiting = waiting_of(status) if not ended else None
    return KeeperTry(
        number=int(label(pod, TRY_LABEL)),
        phase=phase,
        words=keeper_result(pod, KEEPER_CONTAINER) if ended else {},
        ended_at=finished_at(pod),
        waiting=Problem(waiting.reason, f"{name_of(pod)} waits: {waiting.message}") if waiting else None,
        lost=is_lost(pod, memory),
    )


# ---- as the job sees it -------------------------------------------------------------------------------


def _known(manifest: Object, *, in_use_by: tuple[str, ...]) -> Known:
    spec, status, metadata = manifest["spec"], manifest.get("status") or {}, manifest["metadata"]
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    stalled = conditions.get("Stalled") or {}
    failed = status.get("failedAt") is not None
    began, done = _time(status.get("startedAt")), _time(status.get("completedAt"))
    return Known(
        name=metadata["name"],
        uid=metadata["uid"],
        cause=cast(Cause, spec.get("cause", "Manual")),
        phase=_phase(failed=failed, done=done is not None),
        began_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        pinned=bool(spec.get("pinned")),
        verifying=not failed and (conditions.get("Verified") or {}).get("reason") == "Verifying",
        imported=spec.get("path") is not None,
        in_use_by=in_use_by,
        reason=stalled.get("reason", "") if failed else "",
        problem=stalled.get("message", "") if failed else "",
        batches={one["name"]: one["batch"] for one in status.get("queries") or ()},
        more_queries=bool(status.get("moreQueries")),
        completed_at=done,
        seconds=(done - began).total_seconds() if done is not None and began is not None else None,
        size_bytes=status.get("bytes"),
    )


def _phase(*, failed: bool, done: bool) -> Phase:
    if failed:
        return Phase.FAILED
    return Phase.GOOD if done else Phase.TAKING


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
