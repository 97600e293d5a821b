"""What a plan is made from: the job as it runs, on a cluster, in a file or on this machine, and the edit."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from headrace.api import Attempt, Run, StableRun, StreamJob, StreamJobSpec, StreamJobStatus
from headrace.cli.cluster import Cluster, ClusterProblem, Forbidden, Object
from headrace.cli.figures import read_figures
from headrace.cli.jobs import LiveJob, pin_of, savepoints
from headrace.cli.manifest import LoadedManifest, load_streamjob
from headrace.core.edit_plan import Edit, Running
from headrace.core.expectations import Figures
from headrace.core.model import Code, CodeProblem, Problem
from headrace.core.revision import revision_of
from headrace.kube.code import NAMED_BY_SPEC, code_in
from headrace.kube.errors import Conflict, Denied, Invalid, NotFound
from headrace.kube.resources import CONFIG_MAPS, STREAM_JOBS, STREAM_SAVEPOINTS

# ---- a cluster


def against_cluster(cluster: Cluster, job: StreamJob, beside: LoadedManifest, *, now: datetime) -> Edit:
    """`beside` are the other documents of the file: a ConfigMap with the code may be among them."""
    live = _live(cluster, job.metadata.name)
    running, notes = _running(cluster, live) if live is not None else (None, ())
    refusals, more = _dry_run(cluster, job)
    return Edit(
        job=job,
        now=now,
        running=running,
        code=_code(cluster, job, beside),
        figures=_figures(cluster, job.metadata.name),
        refusals=(*refusals, *_start_refused(cluster, job, running)),
        notes=(*notes, *more),
    )


def _live(cluster: Cluster, name: str) -> LiveJob | None:
    try:
        return LiveJob(cluster.get(STREAM_JOBS, name))
    except NotFound:
        return None


def _running(cluster: Cluster, live: LiveJob) -> tuple[Running | None, tuple[str, ...]]:
    run = live.status.run
    pin = pin_of(cluster, live, run.number) if run is not None else None
    applied = live.spec
    if applied is None and pin is None:
        return None, ("the job on the cluster was written by another version of Headrace: not compared",)
    spec = pin.spec if pin is not None else applied
    assert spec is not None
    notes = (
        (f"what run {run.number} was pinned with could not be read: compared with the manifest as applied",)
        if pin is None and run is not None
        else ()
    )
    running = Running(
        spec=spec,
        applied=applied if applied is not None else spec,
        status=live.status,
        code=pin.code_digest if pin is not None else None,
        paused=live.paused,
        deleting=live.deleting,
    )
    return running, notes


def _dry_run(cluster: Cluster, job: StreamJob) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """The server's own word: its rules about edits, admission webhooks, policies."""
    body = job.model_dump(mode="json", exclude_unset=True, by_alias=True)
    body |= {"apiVersion": job.api_version, "kind": job.kind}
    body.pop("status", None)
    body["metadata"]["namespace"] = cluster.namespace
    try:
        cluster.try_apply(STREAM_JOBS, body)
    except Forbidden as error:
        return (), (f"the API server was not asked for a dry run: {str(error).splitlines()[0]}",)
    except Invalid as error:
        return (Problem("Invalid", _rule_message(str(error))),), ()
    except Denied as error:
        return (Problem(error.reason, str(error)),), ()
    except (Conflict, NotFound) as error:
        return (Problem("Invalid", str(error)),), ()
    return (), ()


def _rule_message(message: str) -> str:
    """`StreamJob.headrace.dev "x" is invalid: spec: Invalid value: "object": <ours>` -> `<ours>`."""
    _, _, told = message.partition(" is invalid: ")
    parts = (told or message).split(": Invalid value: ")
    if len(parts) == 1:
        return told or message
    field = parts[0].strip("[]<>")
    words = [part.partition(": ")[2] or part for part in parts[1:]]
    return f"{field}: {words[0]}" if field not in ("nil", "") else words[0]


def _start_refused(cluster: Cluster, job: StreamJob, running: Running | None) -> tuple[Problem, ...]:
    """A new job that is to start from a savepoint which is not there would wait for it."""
    start = job.spec.start_from
    begun = running is not None and running.status.run is not None
    if begun or start is None or start.savepoint is None:
        return ()
    try:
        cluster.get(STREAM_SAVEPOINTS, start.savepoint)
    except NotFound:
        where = f"spec.startFrom.savepoint: there is no StreamSavepoint {start.savepoint}"
        return (Problem("NoSavepoint", f"{where} in namespace {cluster.namespace}"),)
    except ClusterProblem:
        return ()
    return ()


def _code(cluster: Cluster, job: StreamJob, beside: LoadedManifest) -> Code | CodeProblem | None:
    """The code as the operator would see it; that of a ConfigMap in the same file counts as applied."""
    wanted = job.spec.application.config_map
    if wanted is None:
        return NAMED_BY_SPEC
    given = _given_config_map(beside, wanted.name)
    if given is not None:
        return code_in(given, wanted, cluster.namespace).code
    try:
        found = cluster.get(CONFIG_MAPS, wanted.name)
    except NotFound:
        found = None
    except ClusterProblem:
        return None
    return code_in(found, wanted, cluster.namespace).code


def _given_config_map(beside: LoadedManifest, name: str) -> Object | None:
    for other in beside.others:
        if other.get("kind") == "ConfigMap" and (other.get("metadata") or {}).get("name") == name:
            return other
    return None


def _figures(cluster: Cluster, name: str) -> Figures:
    known = read_figures(cluster, name)
    try:
        taken = savepoints(cluster, name)
    except ClusterProblem:
        return known
    done = [one.status for one in taken if one.status is not None and one.status.completed_at is not None]
    return replace(known, savepoint=max(done, key=lambda one: one.completed_at or 0, default=None))


# ---- a file


def against_file(job: StreamJob, old: Path, *, now: datetime) -> Edit:
    """Offline: a manifest, or what `kubectl get streamjob -o yaml` wrote, which knows the status as well."""
    found = load_streamjob(old)
    if isinstance(found, str):
        raise ClusterProblem(found)
    if found.metadata.name != job.metadata.name:
        raise ClusterProblem(
            f"{old} holds {found.metadata.name}, not {job.metadata.name}: that is another job"
        )
    known = found.status is not None and found.status.run is not None
    status = found.status if known and found.status is not None else _as_if_running(found.spec)
    code = NAMED_BY_SPEC if job.spec.application.config_map is None else None
    note = () if known else (f"nothing is known of what runs: {old} is taken for run 1",)
    return Edit(
        job=job,
        now=now,
        running=Running(
            spec=found.spec,
            applied=found.spec,
            status=status,
            code=code.digest if code is not None else None,
        ),
        code=code,
        notes=note,
    )


def _as_if_running(spec: StreamJobSpec) -> StreamJobStatus:
    attempt = Attempt(number=1, epoch=1, state="Started")
    revision = revision_of(spec, NAMED_BY_SPEC.digest)
    run = Run(number=1, revision=revision, attempt=attempt)
    # What runs is what a failed edit goes back to: the usual case.
    stable = StableRun(run=1, revision=revision)
    return StreamJobStatus(state="Running", run=run, last_stable=stable, epoch=1)


# ---- this machine


def against_local(
    job: StreamJob, state_dir: Path, *, manifest_dir: Path, code_file: Path | None, now: datetime
) -> Edit:
    """The job of `headrace dev`: its state directory has the run, what it was pinned with, and the code."""
    from headrace.local import code as local_code  # noqa: PLC0415 - needs nothing of a cluster
    from headrace.local.dev import home_of  # noqa: PLC0415
    from headrace.local.layout import Layout, read_json  # noqa: PLC0415

    layout = Layout(home_of(state_dir, job.metadata.name).absolute())
    kept: dict[str, Any] | None = read_json(layout.streamjob)
    running = None
    if kept is not None:
        status = StreamJobStatus.parse(kept.get("status") or {})
        pinned = read_json(layout.pin(status.run.number)) if status.run is not None else None
        applied = StreamJobSpec.parse(kept["spec"])
        running = Running(
            spec=StreamJobSpec.parse(pinned["spec"]) if pinned is not None else applied,
            applied=applied,
            status=status,
            code=pinned["code"] if pinned is not None else None,
            saves=False,
        )
    return Edit(
        job=job,
        now=now,
        running=running,
        code=local_code.observe(job.spec.application, manifest_dir.absolute(), code_file),
    )
