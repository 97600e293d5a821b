"""What is injected, each on a trace of its own row: the middle of a made-up day."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.simulate.faults import Fault, Kind
from headrace.simulate.parameters import DEFAULT, Parameters
from headrace.simulate.scenario import Scenario
from headrace.simulate.traces import made_up

AT = 7200.0


@dataclass(frozen=True)
class Mishap:
    name: str
    faults: tuple[Fault, ...]
    parameters: Parameters = DEFAULT

    def scenario(self) -> Scenario:
        return Scenario(trace=made_up("day", 7), parameters=self.parameters, faults=self.faults)


def _fault(kind: Kind, seconds: float, amount: float = 0.0) -> tuple[Fault, ...]:
    return (Fault(kind=kind, at=AT, seconds=seconds, amount=amount),)


MISHAPS = (
    Mishap("the driver is down for 10 min", _fault(Kind.OUTAGE, 600)),
    Mishap("the sink is 10 times slower for 20 min", _fault(Kind.SINK, 1200, 10)),
    Mishap("no more than 5 executors for 30 min", _fault(Kind.DENIED, 1800, 5)),
    Mishap("nobody sees the lag for 20 min", _fault(Kind.BLIND, 1200)),
    Mishap("one batch takes 10 min", _fault(Kind.STALL, 600)),
    Mishap("a partition gets a fifth for an hour", _fault(Kind.HOT, 3600, 0.2)),
    Mishap("starts take 4 times as long", (Fault(kind=Kind.SLOW_START, at=0, seconds=4 * 3600, amount=4),)),
    Mishap("3 executors die", _fault(Kind.LOSS, 60, 3)),
    Mishap(
        "40 min down, rows are kept for 60 min",
        _fault(Kind.OUTAGE, 2400),
        replace(DEFAULT, retention_seconds=3600.0),
    ),
)
