"""The drivers of a job on this machine: attempts, and candidates, which may become attempts.

Each has a directory of its own. What we started we know as a child; what an earlier, killed session started
is found by its files, has lost its parent, and drains by itself.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.api import StreamJobStatus
from headrace.core.actions import ActivateCandidate, DrainAttempt, StopCandidate
from headrace.core.last_words import ended_by
from headrace.core.model import AttemptPhase, Ended, Ending, Job, ObservedAttempt, ObservedCandidate
from headrace.core.reports import (
    STANDBY,
    activation_of,
    phase_of,
    query_report,
    rehearsal_notes,
    spark_version,
    starting_report,
)
from headrace.local.agent import AgentClient
from headrace.local.layout import AttemptFiles, Layout, read_json, write_json
from headrace.local.processes import DriverProcess

# After its own time limit a driver gets this much to go; then it is killed. Its pending batch is replayed.
KILL_GRACE_SECONDS = 15.0


@dataclass
class Child:
    """A driver that we started, and what we have asked of it."""

    process: subprocess.Popen[bytes]
    token: str
    drain_asked_at: float | None = None


@dataclass(frozen=True)
class _Driver:
    """One of them: an attempt, or a candidate that is none."""

    run: int
    files: AttemptFiles
    # None of an attempt that was started as such.
    candidate: int | None = None
    # None of a candidate that rehearses, or waits.
    attempt: int | None = None


@dataclass
class Drivers:
    layout: Layout
    # The last status of the live driver's agent, for the view.
    report: dict[str, Any] | None = None
    _children: dict[Path, Child] = field(default_factory=dict)
    _ended: dict[tuple[int, int], ObservedAttempt] = field(default_factory=dict)

    def started(self, files: AttemptFiles, child: Child) -> None:
        self._children[files.home] = child

    # ---- observe ------------------------------------------------------------------------------------

    def attempts(self, runs: Iterable[int], status: StreamJobStatus) -> tuple[ObservedAttempt, ...]:
        found = [one for one in self._all(runs, status) if one.attempt is not None]
        return tuple(sorted(map(self._attempt, found), key=lambda one: (one.run, one.number)))

    def candidates(self, runs: Iterable[int], status: StreamJobStatus) -> tuple[ObservedCandidate, ...]:
        found = [one for one in self._all(runs, status) if one.attempt is None]
        return tuple(sorted(map(self._candidate, found), key=lambda one: one.number))

    def _all(self, runs: Iterable[int], status: StreamJobStatus | None = None) -> Iterator[_Driver]:
        """Whatever the status says, every directory is looked at."""
        for run in runs:
            for home in (self.layout.runs / f"run-{run}").glob("attempt-*"):
                yield _Driver(run, AttemptFiles(home), attempt=int(home.name.removeprefix("attempt-")))
            for home in (self.layout.runs / f"run-{run}").glob("candidate-*"):
                files, number = AttemptFiles(home), int(home.name.removeprefix("candidate-"))
                ordered: dict[str, int] | None = read_json(files.activated)
                attempt = ordered["attempt"] if ordered is not None else _named(status, run, number)
                yield _Driver(run, files, candidate=number, attempt=attempt)

    def _attempt(self, driver: _Driver) -> ObservedAttempt:
        assert driver.attempt is not None  # it is one
        key = (driver.run, driver.attempt)
        if (ended := self._ended.get(key)) is not None:
            return ended
        process, child = DriverProcess.read(driver.files.process), self._children.get(driver.files.home)
        exit_code = child.process.poll() if child is not None else None
        child_alive = child is not None and exit_code is None
        if child_alive or (process is not None and process.alive()):
            _reap_headless_jvm(process, child_alive)
            return self._live(driver, process, child)
        self._ended[key] = ended = ObservedAttempt(
            run=driver.run,
            number=driver.attempt,
            uid=_uid(driver, process),
            phase=AttemptPhase.ENDED,
            ended=_termination(driver.files, exit_code),
        )
        return ended

    def _live(self, driver: _Driver, process: DriverProcess | None, child: Child | None) -> ObservedAttempt:
        assert driver.attempt is not None  # it is one
        report = _ask(process, child)
        self.report = report or self.report
        # A driver that is not our child has lost its parent: it is draining by itself.
        assumed = AttemptPhase.STARTING if child is not None else AttemptPhase.DRAINING
        return ObservedAttempt(
            run=driver.run,
            number=driver.attempt,
            uid=_uid(driver, process),
            phase=phase_of(report) if report is not None else assumed,
            queries=tuple(query_report(query) for query in (report or {}).get("queries", ())),
            waiting=starting_report(report),
            spark_version=spark_version(report),
            activation=activation_of(report) if report is not None else None,
        )

    def _candidate(self, driver: _Driver) -> ObservedCandidate:
        assert driver.candidate is not None  # it is one
        process, child = DriverProcess.read(driver.files.process), self._children.get(driver.files.home)
        exit_code = child.process.poll() if child is not None else None
        alive = (child is not None and exit_code is None) or (process is not None and process.alive())
        report = _ask(process, child) if alive else None
        return ObservedCandidate(
            run=driver.run,
            number=driver.candidate,
            uid=_uid(driver, process),
            ended=None if alive else _termination(driver.files, exit_code),
            running=alive,
            standby=report["phase"] == STANDBY if report is not None else None,
            notes=rehearsal_notes(report),
        )

    # ---- what they are told -------------------------------------------------------------------------

    def stop_candidate(self, action: StopCandidate) -> None:
        """Nothing to finish: it writes nothing."""
        self._kill(self.layout.candidate(action.run, action.number))

    def activate(self, action: ActivateCandidate) -> None:
        """The note first: it says for ever that this driver may have written as that attempt."""
        files = self.layout.candidate(action.run, action.number)
        order = {"run": action.run, "attempt": action.attempt, "epoch": action.epoch}
        write_json(files.activated, order)
        process, child = DriverProcess.read(files.process), self._children.get(files.home)
        if (agent := _agent(process, child)) is not None:
            agent.activate({**order, "acceptPending": action.accept_pending})

    def drain(self, job: Job, action: DrainAttempt) -> None:
        files = self._files(action.run, action.attempt)
        child = self._children.get(files.home)
        if child is None:
            return  # it lost its parent, so it drains by itself
        now = time.monotonic()
        if child.drain_asked_at is None:
            child.drain_asked_at = now
            agent = _agent(DriverProcess.read(files.process), child)
            limit = job.spec.drain_timeout.seconds
            if agent is None or not agent.drain(
                timeout_seconds=limit, snapshots_first=action.snapshots_first
            ):
                child.process.send_signal(signal.SIGTERM)  # it has no agent yet; a signal says the same
        elif now - child.drain_asked_at > job.spec.drain_timeout.seconds + KILL_GRACE_SECONDS:
            self._kill(files)

    def halt(self) -> None:
        """At once: nothing is lost; a pending batch is replayed."""
        for home, child in self._children.items():
            if child.process.poll() is None:
                self._kill(AttemptFiles(home))

    def _files(self, run: int, attempt: int) -> AttemptFiles:
        """Of an attempt, whatever its driver was started as."""
        activated = (one.files for one in self._all([run]) if one.candidate and one.attempt == attempt)
        return next(activated, self.layout.attempt(run, attempt))

    def _kill(self, files: AttemptFiles) -> None:
        process = DriverProcess.read(files.process)
        if (child := self._children.get(files.home)) is not None:
            child.process.kill()
            child.process.wait()
        if process is not None:
            process.kill()


def _named(status: StreamJobStatus | None, run: int, number: int) -> int | None:
    """The attempt that the status names this candidate as: the order may have reached it."""
    current = status.run if status is not None else None
    attempt = current.attempt if current is not None else None
    activation = attempt.activation if attempt is not None else None
    if current is None or attempt is None or activation is None:
        return None
    return attempt.number if (current.number, activation.candidate) == (run, number) else None


def _uid(driver: _Driver, process: DriverProcess | None) -> str:
    if driver.candidate is not None:
        return f"c{driver.candidate}"
    return process.uid if process is not None else ""


def _agent(process: DriverProcess | None, child: Child | None) -> AgentClient | None:
    if process is None or process.agent_port is None or child is None:
        return None
    return AgentClient(process.agent_port, child.token, process.uid)


def _ask(process: DriverProcess | None, child: Child | None) -> dict[str, Any] | None:
    agent = _agent(process, child)
    return agent.status() if agent is not None else None


def _reap_headless_jvm(driver: DriverProcess | None, child_alive: bool) -> None:
    """A JVM whose Python driver is dead has nobody to answer to. Spark ends it by itself; make sure."""
    if driver is None or driver.jvm is None or child_alive or driver.driver.alive():
        return
    driver.jvm.kill()


def _termination(files: AttemptFiles, exit_code: int | None) -> Ended:
    content = read_json(files.termination)
    told = ended_by(content, exit_code=content.get("exitCode")) if content is not None else None
    if told is None:
        how = f" (signal {-exit_code})" if exit_code is not None and exit_code < 0 else ""
        return Ended(
            ending=Ending.KILLED,
            exit_code=exit_code,
            message=f"the driver process was killed{how}; its last words are in {files.log}",
            log_file=str(files.log),
        )
    # The whole log lies here already: a tail of it in the store would be one copy more.
    return replace(told, log_file=str(files.log))
