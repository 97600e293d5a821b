"""The log of a job's driver: of the pod where there is one, or where it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.cli.cluster import Answer, Cluster, ClusterProblem
from headrace.cli.jobs import Attempt, LiveJob, driver_pod_name, job
from headrace.kube.errors import ApiError, NotFound
from headrace.kube.resources import PODS

_LOOK_AGAIN_SECONDS = 2.0
# No attempt follows by itself.
_AT_REST = frozenset({"Suspended", "Sleeping", "Completed", "Failed", "Stalled", "Paused"})


@dataclass(frozen=True, kw_only=True)
class LogRequest:
    name: str
    previous: bool = False
    follow: bool = False
    tail: int | None = None
    container: str = "driver"


def read_log(
    cluster: Cluster,
    request: LogRequest,
    *,
    write: Callable[[str], None],
    say: Callable[[str], None],
    sleep: Callable[[float], None],
) -> None:
    """Line by line. Followed, it goes on with the next attempt when one ends."""
    found = job(cluster, request.name)
    attempt = _previous(found) if request.previous else _current(found)
    told = ""
    while True:
        try:
            for line in _lines(cluster, found, attempt, request):
                write(line)
        except _NotYet as waiting:
            if not request.follow:
                raise ClusterProblem(f"{waiting}. Why: kubectl streamjob events {found.name}") from None
            if str(waiting) != told:
                say(told := str(waiting))
            sleep(_LOOK_AGAIN_SECONDS)
            found = job(cluster, request.name)
            attempt = _current(found)
            continue
        if not request.follow:
            return
        following = _following(cluster, request, attempt, sleep)
        if following is None:
            say(f"attempt {attempt[1]} of run {attempt[0]} has ended, and no other follows by itself")
            return
        found, attempt = following
        say(f"--- attempt {attempt[1]} of run {attempt[0]} ---")


def _following(
    cluster: Cluster, request: LogRequest, ended: Attempt, sleep: Callable[[float], None]
) -> tuple[LiveJob, Attempt] | None:
    while True:
        found = job(cluster, request.name)
        if (attempt := _current(found)) != ended:
            return found, attempt
        if found.status.state in _AT_REST:
            return None
        sleep(_LOOK_AGAIN_SECONDS)


class _NotYet(Exception):
    """The container has not started: there is no log yet."""


def _lines(cluster: Cluster, found: LiveJob, attempt: Attempt, request: LogRequest):
    pod = driver_pod_name(found, attempt)
    query = {"container": request.container}
    if request.follow:
        query["follow"] = "true"
    if request.tail is not None:
        query["tailLines"] = str(request.tail)
    path = PODS.path(found.namespace, pod, "log")
    try:
        yield from cluster.transport.lines(path, query=query)
    except NotFound:
        raise _gone(found, attempt, pod, request) from None
    except ApiError as error:
        if error.status == 400 and "waiting to start" in str(error):
            raise _NotYet(f"the driver {pod} has not started yet") from None
        answer = Answer(error.status, {"kind": "Status", "message": str(error)})
        raise cluster.explained(answer, verb="get", resource=PODS, place=found.namespace) from None


def _gone(found: LiveJob, attempt: Attempt, pod: str, request: LogRequest) -> Exception:
    last = found.status.last_termination
    if not request.previous and found.status.state in ("Starting", "Waiting"):
        return _NotYet(f"there is no driver pod {pod} yet")
    if last is not None and last.log_file and (last.run, last.attempt) == attempt:
        return ClusterProblem(f"the pod {pod} is gone. The end of its log is kept at {last.log_file}")
    hint = " The attempt before it: --previous" if not request.previous else ""
    return ClusterProblem(f"the pod {pod} is gone, and its log with it.{hint}")


def _current(found: LiveJob) -> Attempt:
    run = found.status.run
    if run is None or run.attempt is None:
        raise ClusterProblem(
            f"{found.name} has had no driver yet. Why: kubectl streamjob status {found.name}"
        )
    return run.number, run.attempt.number


def _previous(found: LiveJob) -> Attempt:
    last = found.status.last_termination
    if last is None:
        raise ClusterProblem(f"no attempt of {found.name} has ended yet: leave --previous out")
    return last.run, last.attempt
