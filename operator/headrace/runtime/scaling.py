"""The autoscaler of running jobs: listens to what their agents report, decides, and lets the planner know.

The policy is pure (core/autoscale), and so is what the status shows of it (core/advice.py). Here is what is
kept between two looks. It is handed to the driver's agent every few minutes, which keeps it in the job's own
store, and asked back after a restart of this process. Without it the policy learns anew; the target is in the
status, and is never forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from headrace.api import StreamJobSpec, StreamJobStatus
from headrace.core.advice import Advice, advice_of, published
from headrace.core.autoscale import Decision, Memory
from headrace.core.autoscale.look import Look, look, to_entry, to_point
from headrace.core.autoscale.quiet import Quiet, lookout_problem, still_quiet
from headrace.core.autoscale.report import Reading, read
from headrace.core.executors import present_target
from headrace.core.idle import seconds_without_work
from headrace.core.model import AttemptPhase, Idleness, ObservedExecutors
from headrace.kube.agent import AgentAddress, Agents
from headrace.runtime.job_metrics import JobMetrics
from headrace.runtime.reconcile import Key, Outcome
from headrace.runtime.scaling_metrics import ScalingSample

log = logging.getLogger("headrace")

_KEEP_SECONDS = 300.0
# How old the numbers may be that somebody sees who asks why.
_TELL_SECONDS = 60.0
_POINT_SECONDS = 60.0
# What an agent could not take is kept for so long.
_UNKEPT = 200
# An agent that does not hand the memory back is asked so often before the learning begins anew.
_RECALLS = 4


@dataclass(kw_only=True)
class _Scaled:
    """One job."""

    uid: str
    spec: StreamJobSpec
    status: StreamJobStatus
    executors: ObservedExecutors | None
    memory: Memory | None = None
    recalls: int = 0
    advice: Advice | None = None
    # Of the newest look: the advice stays as it was while it says nothing new.
    stopped_seconds: float | None = None
    looked_at: float = 0.0
    pending_since: float | None = None
    lost: int = 0
    kept_at: float = 0.0
    told_at: float = 0.0
    entries: list[dict[str, Any]] = field(default_factory=list)
    points: list[list[float | int | None]] = field(default_factory=list)
    point_at: float = 0.0
    told: tuple[object, ...] | None = None
    # Whether the attempt of this uid has work.
    attempt: str | None = None
    quiet: Quiet | None = None
    no_lookout: str | None = None


@dataclass(kw_only=True)
class Scaling:
    agents: Agents
    metrics: JobMetrics
    now: Callable[[], datetime]
    _jobs: dict[Key, _Scaled] = field(default_factory=dict)

    def follow(self, key: Key, outcome: Outcome) -> None:
        """After a pass: what is wanted of the job, and where it stands."""
        job, status = outcome.job, outcome.status
        if job is None or status is None:
            return
        known = self._jobs.get(key)
        if known is None or known.uid != job.uid:
            self._jobs[key] = _Scaled(uid=job.uid, spec=job.spec, status=status, executors=outcome.executors)
        else:
            known.spec, known.status, known.executors = job.spec, status, outcome.executors

    def forget(self, key: Key) -> None:
        self._jobs.pop(key, None)

    def advice(self, key: Key, uid: str) -> Advice | None:
        known = self._jobs.get(key)
        if known is None or known.uid != uid or known.advice is None:
            return None
        return replace(known.advice, stopped_seconds=known.stopped_seconds)

    def idleness(self, key: Key, attempt: str) -> Idleness | None:
        known = self._jobs.get(key)
        if known is None or known.attempt != attempt:
            return None
        since = datetime.fromtimestamp(known.quiet.since, UTC) if known.quiet is not None else None
        return Idleness(since=since, problem=known.no_lookout)

    async def look(self, key: Key, address: AgentAddress, report: Mapping[str, Any] | None) -> bool:
        """Whether there is something to say that the status does not say yet."""
        job = self._jobs.get(key)
        if job is None or report is None or report.get("phase") != AttemptPhase.RUNNING:
            return False
        try:
            return await self._look(key, job, address, report)
        except Exception:
            # Reports come out of containers in which user code runs. One job's must not stop all others.
            log.exception("%s/%s: the autoscaler could not decide, and learns anew", *key)
            job.memory, job.looked_at = Memory(), self.now().timestamp()
            return False

    async def _look(self, key: Key, job: _Scaled, address: AgentAddress, report: Mapping[str, Any]) -> bool:
        if not await self._recall(job, address):
            return False
        reading = self._read(job, address, report)
        if reading is None:
            return False
        may_sleep = self._listen(job, address, reading)
        made = self._decide(job, reading)
        before, scaling = job.advice, job.spec.autoscaling
        if scaling is not None:
            fresh = advice_of(
                made.decision,
                at=self.now(),
                objective_seconds=scaling.lag_objective.seconds,
                before=before,
            )
            job.advice, job.stopped_seconds = published(before, fresh), fresh.stopped_seconds
        self.metrics.set_scaling(key, ScalingSample(made.decision, job.lost))
        self._note(job, made.decision)
        await self._keep(job, address, made.decision)
        return may_sleep or job.advice is not before

    def _read(self, job: _Scaled, address: AgentAddress, report: Mapping[str, Any]) -> Reading | None:
        now = self.now().timestamp()
        reading = read(report, now=now)
        # A last look in the future was by a clock that has been put right: what is older than it is news. So
        # it is of another driver, whose clock is another one.
        goes_on = job.attempt == address.uid and job.looked_at <= now
        is_old = reading.at == job.looked_at or (reading.at < job.looked_at and goes_on)
        if not reading.queries or is_old:
            return None  # nothing has been measured since
        if reading.at < job.looked_at:
            # Dates of before would be waited for. Nothing that is kept here is lost.
            job.kept_at = job.told_at = 0.0
            job.pending_since, job.point_at = None, 0.0
        job.looked_at = reading.at
        return reading

    def _listen(self, job: _Scaled, address: AgentAddress, reading: Reading) -> bool:
        """Whether the job has work. Whether the planner should know: it may sleep, or never can."""
        idle = job.spec.autoscaling.idle if job.spec.autoscaling is not None else None
        if job.attempt != address.uid:
            # A driver that has just come up has not been without work for long, whoever was before it.
            job.attempt, job.quiet, job.no_lookout = address.uid, None, None
            job.memory = (job.memory or Memory()).with_new_driver()
            job.pending_since = None
        before = job.no_lookout
        # By our own clock, as all that is compared with it: the driver's may be minutes away.
        heard = replace(reading, at=self.now().timestamp())
        job.quiet, job.no_lookout = still_quiet(job.quiet, heard), lookout_problem(reading)
        if idle is None or job.status.sleep is not None:
            return False
        quiet_seconds = self.now().timestamp() - job.quiet.since if job.quiet is not None else 0.0
        due = job.quiet is not None and quiet_seconds >= seconds_without_work(idle, job.status)
        return before != job.no_lookout or (due and job.no_lookout is None)

    def _decide(self, job: _Scaled, reading: Reading) -> Look:
        now = self.now()
        asked = present_target(job.spec, job.status)
        ready = reading.executors if reading.executors is not None else job.status.executors.ready
        if ready >= asked:
            job.pending_since = None
        elif job.pending_since is None:
            job.pending_since = reading.at
        waiting = job.executors.waiting if job.executors is not None else None
        made = look(
            job.spec,
            reading,
            job.memory or Memory(),
            asked=asked,
            ready=ready,
            pending_seconds=0.0 if job.pending_since is None else reading.at - job.pending_since,
            why_pending=waiting.message if waiting is not None else None,
            now=now,
        )
        job.memory, job.lost = made.memory, job.lost + made.lost
        if reading.at - job.point_at >= _POINT_SECONDS:
            job.point_at = reading.at
            job.points = [*job.points[-_UNKEPT:], to_point(made.decision, ready=ready)]
        return made

    def _note(self, job: _Scaled, decision: Decision) -> None:
        """A decision that says what the last one said is not news."""
        says = (decision.target, decision.reason)
        if decision.moves or says != job.told:
            job.told = says
            job.entries = [*job.entries[-_UNKEPT:], to_entry(decision)]

    async def _recall(self, job: _Scaled, address: AgentAddress) -> bool:
        """What an earlier operator, or this job's last driver, has learned. Whether it is time to go on."""
        if job.memory is not None:
            return True
        kept = await self.agents.scaling(address)
        if kept is None and job.recalls < _RECALLS:
            job.recalls += 1
            return False
        try:
            job.memory = Memory.from_json((kept or {}).get("memory") or {})
        except (KeyError, TypeError, ValueError, AttributeError):
            job.memory = Memory()  # it came out of a container in which user code runs
        job.kept_at = self.now().timestamp()
        return True

    async def _keep(self, job: _Scaled, address: AgentAddress, decision: Decision) -> None:
        """Moves at once, other news within a minute, what was learned every few minutes."""
        now, newest = self.now().timestamp(), {"newest": to_entry(decision)}
        if job.memory is None:
            return
        due = _TELL_SECONDS if job.entries else _KEEP_SECONDS
        if now - job.kept_at < due and not decision.moves:
            if now - job.told_at >= _TELL_SECONDS:
                job.told_at = now
                await self.agents.keep_scaling(address, newest)
            return
        job.kept_at = job.told_at = now
        known = {"memory": job.memory.to_json(), "decisions": job.entries, "looks": job.points}
        if await self.agents.keep_scaling(address, {**known, **newest}):
            job.entries, job.points = [], []
