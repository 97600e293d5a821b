"""Is it fine, and if not, what now? Questions in order; the first that applies gives the next command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headrace.api import PAUSE_ANNOTATION
from headrace.cli.jobs import LiveJob

PROGRAM = "kubectl streamjob"


class Health(StrEnum):
    FINE = "fine"
    BUSY = "busy"
    # It runs, but not as it was asked to: an edit was refused or rolled back.
    ATTENTION = "attention"
    TROUBLE = "trouble"
    RESTING = "resting"


@dataclass(frozen=True)
class Advice:
    """What to do now, in a sentence, and the command for it."""

    message: str
    command: str


def health(job: LiveJob) -> Health:
    status = job.status
    if _is(job, "DataLossRisk") or status.state in ("Failed", "Backoff", "Stuck"):
        return Health.TROUBLE
    if status.lag is not None and status.lag.band == "AtRisk":
        return Health.TROUBLE
    if _is(job, "Stalled"):
        return Health.ATTENTION if _is(job, "Ready") else Health.TROUBLE
    if job.paused or status.state in ("Suspended", "Sleeping", "Completed", "Detached"):
        return Health.RESTING
    if job.unseen or job.deleting or status.operation is not None or not _is(job, "Ready"):
        return Health.BUSY
    return Health.FINE


def advice(job: LiveJob) -> Advice | None:
    return next((given for question in _QUESTIONS if (given := question(job)) is not None), None)


def _is(job: LiveJob, condition: str) -> bool:
    return any(each.type == condition and each.status == "True" for each in job.status.conditions)


def _reason(job: LiveJob, condition: str) -> str | None:
    return next(
        (each.reason for each in job.status.conditions if each.type == condition and each.status == "True"),
        None,
    )


def _command(job: LiveJob, verb: str, *rest: str) -> str:
    return " ".join((PROGRAM, verb, job.name, "-n", job.namespace, *rest))


def _patch(job: LiveJob, patch: str) -> str:
    return f"kubectl patch streamjob {job.name} -n {job.namespace} --type=merge -p '{patch}'"


def _deleting(job: LiveJob) -> Advice | None:
    if not job.deleting:
        return None
    return Advice("It is being deleted; what happens is in its events.", _command(job, "events"))


def _paused(job: LiveJob) -> Advice | None:
    if not job.paused:
        return None
    command = f"kubectl annotate streamjob {job.name} -n {job.namespace} {PAUSE_ANNOTATION}-"
    return Advice(
        "Reconciliation is paused: nothing is done about this job until the annotation goes.", command
    )


def _unseen(job: LiveJob) -> Advice | None:
    if job.status.observed_generation or job.status.state:
        return None
    return Advice(
        "No operator has looked at it yet. Does one run, and does it watch this namespace?",
        "kubectl get deployments -A -l app.kubernetes.io/name=headrace",
    )


# What to do about a Stalled condition, by its reason; the message of the condition says why.
_STALLED: dict[str, tuple[str, Callable[[LiveJob], str]]] = {
    "RehearsalFailed": (
        "The new version failed its rehearsal; the job goes on as it was. Before you apply the fix:",
        lambda _: f"{PROGRAM} plan -f job.yaml",
    ),
    "RolledBack": (
        "It runs, with the version before; the manifest still asks for what failed. Why it did:",
        lambda job: _command(job, "history"),
    ),
    "StateChange": (
        "The edit is refused and the job goes on as it was. See what it would do:",
        lambda _: f"{PROGRAM} plan -f job.yaml",
    ),
    "DataLossNear": (
        "Stopped for the upgrade it could lose rows: it waits, and the job goes on as it was. Its lag:",
        lambda job: _command(job, "explain"),
    ),
    "EarlierLineage": (
        "Say whether it goes on from that state (latest) or begins anew (none):",
        lambda job: _patch(job, '{"spec":{"startFrom":{"latest":true}}}'),
    ),
    "NodeLost": (
        "Bring the node back or remove it:",
        lambda _: "kubectl get nodes",
    ),
    "SavepointFailed": (
        "The savepoint before it failed; see why:",
        lambda job: _command(job, "savepoint list"),
    ),
}


def _stalled(job: LiveJob) -> Advice | None:
    reason = _reason(job, "Stalled")
    if reason is None:
        return None
    if reason in _STALLED:
        message, command = _STALLED[reason]
        return Advice(message, command(job))
    if job.status.state == "Failed":
        return Advice("It waits for a fix. What the driver said last:", _command(job, "logs", "--previous"))
    return Advice("It waits for an edit. Before you apply one:", f"{PROGRAM} plan -f job.yaml")


def _rolled_back(job: LiveJob) -> Advice | None:
    if not _is(job, "RolledBack"):
        return None
    return Advice("The last version was rolled back. Why, and to what:", _command(job, "history"))


def _failing(job: LiveJob) -> Advice | None:
    if job.status.state != "Backoff":
        return None
    return Advice(
        "It is tried again by itself. What the driver said last:", _command(job, "logs", "--previous")
    )


def _stuck(job: LiveJob) -> Advice | None:
    if job.status.state != "Stuck":
        return None
    return Advice("A batch does not end. The stacks of all threads are in the log:", _command(job, "logs"))


def _undecided(job: LiveJob) -> Advice | None:
    operation = job.status.operation
    if operation is None or operation.step != "Undecided":
        return None
    return Advice("The new version failed, and the decision is yours. To go back:", _command(job, "rollback"))


def _changing(job: LiveJob) -> Advice | None:
    if job.status.operation is None and not _is(job, "Reconciling"):
        return None
    if job.status.state in ("Starting", "Waiting"):
        return Advice("It is on its way. Why it takes long, if it does:", _command(job, "events"))
    return Advice("It is on its way. Watch it:", _command(job, "status", "--watch"))


def _losing(job: LiveJob) -> Advice | None:
    lag = job.status.lag
    if lag is None or lag.band not in ("AtRisk", "Behind"):
        return None
    return Advice("It is behind. How many executors there are, and why not more:", _command(job, "explain"))


def _suspended(job: LiveJob) -> Advice | None:
    if job.status.state != "Suspended":
        return None
    return Advice("Its checkpoint is kept. To go on from there:", _command(job, "resume"))


def _fine(job: LiveJob) -> Advice | None:
    if not job.status.state:
        return None
    return Advice("Before you change it:", f"{PROGRAM} plan -f job.yaml")


_QUESTIONS: tuple[Callable[[LiveJob], Advice | None], ...] = (
    _deleting,
    _paused,
    _unseen,
    _undecided,
    _failing,
    _stuck,
    _stalled,
    _changing,
    _rolled_back,
    _losing,
    _suspended,
    _fine,
)
