"""What a scaler can see of a job, and Headrace's own as one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headrace.core.autoscale import Batch, Decision, Executors, Limits, Memory, Observation, Query, decide
from headrace.core.lag import Offsets, UnknownLag
from headrace.simulate.parameters import Parameters


@dataclass(frozen=True, kw_only=True)
class View:
    """One look at the job. None is unknown: nobody answered."""

    at: float
    asked: int
    ready: int
    pending_seconds: float
    batches: tuple[Batch, ...]
    lag_rows: float | None
    arrived_rows: float | None
    # Of the cores of the last minute, the part that worked.
    cpu: float
    # Of the last minute, the part in which a batch ran.
    busy: float
    quiet_seconds: float
    # The query says that it waits for its trigger or for rows.
    idle: bool
    running_seconds: float | None
    running_rows: float | None
    offsets: Callable[[], Offsets]


class Scaler(Protocol):
    """Answers how many executors there should be."""

    name: str
    # How long the job is down when the number changes; None: it changes while the job runs.
    restart_seconds: float | None

    def look(self, view: View) -> int: ...


class HeadraceScaler:
    """The policy that scales real jobs, fed with what an agent would report."""

    restart_seconds: float | None = None

    def __init__(self, parameters: Parameters, limits: Limits, *, name: str = "headrace") -> None:
        self.name = name
        self.decisions: list[Decision] = []
        self._p = parameters
        self._limits = limits
        self.memory = Memory()

    def look(self, view: View) -> int:
        p = self._p
        known = view.lag_rows is not None
        query = Query(
            name="simulated",
            trigger_seconds=p.trigger_seconds,
            source=view.offsets() if known else UnknownLag("nobody answered"),
            batches=view.batches if known else (),
            quiet_seconds=view.quiet_seconds,
            idle=view.idle,
            running_seconds=view.running_seconds,
            running_rows=None if view.running_rows is None else round(view.running_rows),
            shuffle_partitions=p.shuffle_partitions if p.read_part < 1 else None,
            retention_seconds=p.retention_seconds,
            deletes_by_size=False,
        )
        seen = Observation(
            at=view.at,
            queries=(query,),
            executors=Executors(
                cores=p.cores, asked=view.asked, ready=view.ready, pending_seconds=view.pending_seconds
            ),
            limits=self._limits,
        )
        decision, self.memory = decide(seen, self.memory)
        self.decisions.append(decision)
        return decision.target


class Fixed:
    """Always the same number."""

    restart_seconds: float | None = None

    def __init__(self, executors: int, name: str = "static") -> None:
        self.name = name
        self._executors = executors

    def look(self, view: View) -> int:
        del view
        return self._executors
