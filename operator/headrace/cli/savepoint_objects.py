"""The savepoints of a job on a cluster: StreamSavepoint objects, which the operator acts upon."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from headrace.api import API_VERSION, Collection, FoundSavepoint, StartFrom, StreamSavepoint
from headrace.api.names import COLLECT_ANNOTATION, RESTORE_ANNOTATION, VERIFY_ANNOTATION, as_name
from headrace.api.savepoint import SAVEPOINT_NAME_MAX
from headrace.cli.cluster import Cluster, ClusterProblem, Object, no_such
from headrace.cli.options import complete_jobs, failing_well, open_cluster, where_options
from headrace.cli.savepoint_views import Level, SavedQuery, Savepoint, as_level
from headrace.cli.savepoints import SavepointBackend, SavepointRefused, Target, savepoint_commands
from headrace.kube.errors import AlreadyExists, ApiError, NotFound
from headrace.kube.resources import STREAM_JOBS, STREAM_SAVEPOINTS

_LOOK_AGAIN_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class ClusterSavepoints:
    """A `SavepointBackend`. `wait` is False where the command only asks and does not stay."""

    cluster: Cluster
    job: str
    wait: bool = True
    timeout_seconds: float = 3600.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def create(self, name: str | None, tell: Callable[[str], None]) -> Savepoint:
        return self._made(name, {"job": {"name": self.job}}, tell)

    def import_from(self, path: str, name: str | None) -> Savepoint:
        return self._made(name, {"job": {"name": self.job}, "path": path}, lambda _: None)

    def list(self) -> Sequence[Savepoint]:
        with _refusing():
            found = self.cluster.list(STREAM_SAVEPOINTS)
        ours = [one for one in found if one["spec"]["job"]["name"] == self.job]
        return [_as_people_see_it(one) for one in sorted(ours, key=_age)]

    def list_in(self, place: str) -> tuple[Sequence[Savepoint], str]:
        """By a keeper of the job, under its rights: nobody else may look into the store."""
        # With the moment: it can be asked again.
        asked = f"list {place}@{self.now():%Y-%m-%dT%H:%M:%SZ}"
        request = {"metadata": {"annotations": {COLLECT_ANNOTATION: asked}}}
        with _refusing():
            try:
                self.cluster.patch(STREAM_JOBS, self.job, request)
            except NotFound:
                raise SavepointRefused(
                    f"there is no StreamJob {self.job}, under whose rights the store is looked at: apply its "
                    "manifest with suspend: true first"
                ) from None
        until = self.clock() + self.timeout_seconds
        while (found := self._collection()).get("asked") != asked:
            if self.clock() > until:
                raise SavepointRefused(f"no answer after {self.timeout_seconds:g} s: does the operator run?")
            self.sleep(_LOOK_AGAIN_SECONDS)
        answer = Collection.parse(found)
        return [_found_in_store(one) for one in answer.savepoints], answer.message

    def _collection(self) -> Object:
        with _refusing():
            job = self.cluster.find(STREAM_JOBS, self.job) or {}
        return (job.get("status") or {}).get("collection") or {}

    def show(self, name: str) -> Savepoint:
        return _as_people_see_it(self._get(name))

    def verify(self, name: str, level: Level) -> Savepoint:
        """Whatever is known of it: objects may have been lost since."""
        before = _as_people_see_it(self._get(name))
        if before.state == "Failed":
            return _not_whole(before)
        # With the moment: it can be asked again.
        asked = f"{level}@{self.now():%Y-%m-%dT%H:%M:%SZ}"
        with _refusing():
            request = {"metadata": {"annotations": {VERIFY_ANNOTATION: asked}}}
            self.cluster.patch(STREAM_SAVEPOINTS, name, request)
        found = self._wait(name, _answers(asked), lambda _: None)
        seen, answer = _as_people_see_it(found), _check(found)
        if seen.state == "Failed":
            return _not_whole(seen)
        message = str(answer.get("message") or "no reason was told")
        if answer.get("level", "None") == "None":
            raise SavepointRefused(f"{name} could not be checked: {message}")
        return replace(seen, verified_message=message)

    def restore(self, name: str) -> str:
        """A job that has run is asked by an annotation, one that has not by its `startFrom`."""
        saved = _as_people_see_it(self._get(name))
        if saved.state != "Ready":
            raise SavepointRefused(f"{name} is {saved.state}: {saved.message or 'it cannot be restored'}")
        with _refusing():
            job = self.cluster.find(STREAM_JOBS, self.job)
        if job is None:
            return (
                f"There is no StreamJob {self.job} any more. Apply its manifest with:\n"
                f"  spec:\n    startFrom: {{savepoint: {name}}}"
            )
        with _refusing():
            self.cluster.patch(STREAM_JOBS, self.job, self._request(job, name))
        return f"{self.job} starts from {name}. Watch it: kubectl streamjob status {self.job} --watch"

    def _request(self, job: Object, name: str) -> Object:
        if (job.get("status") or {}).get("run") is not None:
            # With the moment: the same savepoint can be asked for again.
            asked = f"{name}@{self.now():%Y-%m-%dT%H:%M:%SZ}"
            return {"metadata": {"annotations": {RESTORE_ANNOTATION: asked}}}
        # Exactly one of its fields may be set: the others go.
        start = {info.alias: None for info in StartFrom.model_fields.values()} | {"savepoint": name}
        return {"spec": {"startFrom": start}}

    def delete(self, name: str, tell: Callable[[str], None]) -> str:
        """The object stays until its copy is removed: it may be in use, or the store may refuse."""
        self._get(name)
        with _refusing():
            self.cluster.delete(STREAM_SAVEPOINTS, name)
        until, told = self.clock() + self.timeout_seconds, ""
        while (left := self._find(name)) is not None:
            why = _as_people_see_it(left).message
            if not self.wait:
                return f"{name} is {why or 'being removed'}"
            if _condition(left, "Stalled").get("reason") == "DeletionFailed" or self.clock() > until:
                raise SavepointRefused(f"{name} is not removed yet: {why}")
            if why != told:
                tell(why)
                told = why
            self.sleep(_LOOK_AGAIN_SECONDS)
        return f"{name} is removed."

    def _find(self, name: str) -> Object | None:
        with _refusing():
            return self.cluster.find(STREAM_SAVEPOINTS, name)

    # ---- inside -------------------------------------------------------------------------------------

    def _made(self, name: str | None, spec: Object, tell: Callable[[str], None]) -> Savepoint:
        chosen = name or as_name(f"{self.job}-{self.now():%Y%m%d-%H%M%S}", longest=SAVEPOINT_NAME_MAX)
        body = {
            "apiVersion": API_VERSION,
            "kind": "StreamSavepoint",
            "metadata": {"name": chosen},
            "spec": spec,
        }
        try:
            with _refusing():
                made = self.cluster.create(STREAM_SAVEPOINTS, body)
        except AlreadyExists:
            raise SavepointRefused(f"there is a savepoint {chosen} already: choose another name") from None
        if not self.wait:
            return _as_people_see_it(made)
        seen = _as_people_see_it(self._wait(chosen, _done, tell))
        if seen.state == "Failed":
            raise SavepointRefused(f"{chosen} failed: {seen.message or 'no reason was told'}")
        return seen

    def _wait(self, name: str, done: Callable[[Object], bool], tell: Callable[[str], None]) -> Object:
        until, told = self.clock() + self.timeout_seconds, ""
        while True:
            found = self._get(name)
            if done(found):
                return found
            if (step := _as_people_see_it(found).message or "waiting for the operator") != told:
                tell(step)
                told = step
            if self.clock() > until:
                raise SavepointRefused(
                    f"{name} is not done after {self.timeout_seconds:g} s; it goes on. "
                    f"See: kubectl streamjob savepoint show {self.job} {name}"
                )
            self.sleep(_LOOK_AGAIN_SECONDS)

    def _get(self, name: str) -> Object:
        with _refusing():
            try:
                found = self.cluster.get(STREAM_SAVEPOINTS, name)
            except NotFound:
                raise no_such(self.cluster, STREAM_SAVEPOINTS, "StreamSavepoint", name) from None
        owner = found["spec"]["job"]["name"]
        if owner != self.job:
            raise SavepointRefused(f"{name} is a savepoint of {owner}, not of {self.job}")
        return found


class _refusing:  # noqa: N801 - reads as a sentence
    """What the cluster refuses, in the words of these commands."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ClusterProblem):
            raise SavepointRefused(str(error)) from None
        if isinstance(error, ApiError) and not isinstance(error, AlreadyExists | NotFound):
            raise SavepointRefused(f"the API server refuses it: {error}") from None


def _age(one: Object) -> str:
    return one["metadata"].get("creationTimestamp") or ""


def _condition(one: Object, kind: str) -> Object:
    conditions = (one.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


def _done(one: Object) -> bool:
    return "True" in (_condition(one, "Ready").get("status"), _condition(one, "Stalled").get("status"))


def _answers(asked: str) -> Callable[[Object], bool]:
    def done(one: Object) -> bool:
        return _check(one).get("asked") == asked or _condition(one, "Stalled").get("status") == "True"

    return done


def _check(one: Object) -> Object:
    return (one.get("status") or {}).get("check") or {}


def _not_whole(failed: Savepoint) -> Savepoint:
    return replace(failed, verified="None", verified_message=failed.message or "it is not whole")


def _as_people_see_it(one: Object) -> Savepoint:
    parsed = StreamSavepoint.parse({**one, "apiVersion": API_VERSION, "kind": "StreamSavepoint"})
    spec, status = parsed.spec, parsed.status
    ready, stalled = _condition(one, "Ready"), _condition(one, "Stalled")
    good, failed = ready.get("status") == "True", stalled.get("status") == "True"
    message = "" if good else (stalled if failed else ready).get("message") or ""
    if "deletionTimestamp" in one["metadata"]:
        message = f"being removed. {message}".strip()
    if status is None:
        return Savepoint(name=parsed.metadata.name, job=spec.job.name, state="Taking", cause=spec.cause)
    return Savepoint(
        name=parsed.metadata.name,
        job=spec.job.name,
        state="Ready" if good else "Failed" if failed else "Taking",
        message=message,
        path=status.path,
        cause=spec.cause if spec.path is None else "Imported",
        taken_at=status.completed_at or status.started_at,
        run=f"run {status.run}" if status.run is not None else None,
        queries=tuple(
            SavedQuery(
                name=query.name,
                batch=query.batch,
                pending=query.pending,
                lineage=query.lineage,
                watermark=query.watermark,
                offsets=dict(query.offsets),
            )
            for query in status.queries
        ),
        objects=status.objects,
        size_bytes=status.bytes,
        verified=status.verified.level,
        verified_message=status.verified.message,
        spark_version=status.spark_version,
    )


def _found_in_store(one: FoundSavepoint) -> Savepoint:
    queries = tuple(SavedQuery(name=name, batch=int(batch)) for name, batch in one.batches.items())
    return Savepoint(
        name=one.path.rpartition("/")[2],
        job=one.job,
        state="Unfinished" if one.problem else "Ready",
        message=one.problem,
        path=one.path,
        cause=one.cause or "-",
        taken_at=one.taken_at,
        queries=queries,
        size_bytes=one.bytes,
        verified=as_level(one.verified),
    )


# ---- the commands


def _parameters(command: Callable[..., None]) -> Callable[..., None]:
    # Added last, an argument comes first: the job before the savepoint.
    return click.argument("job", shell_complete=complete_jobs)(where_options(command))


def _open(
    *,
    job: str,
    namespace: str | None,
    context: str | None,
    kubeconfig: Path | None,
    no_wait: bool = False,
    timeout: int = 3600,
) -> SavepointBackend:
    with failing_well():
        cluster = open_cluster(context=context, kubeconfig=kubeconfig, namespace=namespace)
    return ClusterSavepoints(cluster=cluster, job=job, wait=not no_wait, timeout_seconds=timeout)


def _words(*, job: str, namespace: str | None, context: str | None, **_: object) -> str:
    """As the user named it: what is suggested can be copied."""
    flags = [f"-n {namespace}" if namespace else "", f"--context {context}" if context else ""]
    return " ".join(filter(None, (job, *flags)))


def savepoint_group() -> click.Group:
    group = savepoint_commands("kubectl streamjob", Target(parameters=_parameters, open=_open, words=_words))
    stay = click.Option(
        ["--timeout"], type=click.IntRange(min=1), default=3600, show_default=True, help="Seconds."
    )
    leave = click.Option(["--no-wait"], is_flag=True, help="Ask for it, and do not stay.")
    # Of a check the answer is wanted: there is no leaving before it.
    for verb, options in (
        ("create", (leave, stay)),
        ("import", (leave, stay)),
        ("verify", (stay,)),
        ("delete", (leave, stay)),
        ("list", (stay,)),
    ):
        group.commands[verb].params += options
    return group
