"""What is injected, each on a trace of its own row: a made-up day, shortly before its peak."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.simulate.faults import Fault, Kind
from headrace.simulate.parameters import DEFAULT, Parameters
from headrace.simulate.scenario import Scenario
from headrace.simulate.traces import made_up

LOAD = made_up("day", 7)


@dataclass(frozen=True)
class Mishap:
    name: str
    faults: tuple[Fault, ...]
    parameters: Parameters = DEFAULT

    def scenario(self) -> Scenario:
        return Scenario(trace=LOAD, parameters=self.parameters, faults=self.faults)


def _rising_to(part: float) -> float:
    """When the load first reaches this part of its peak: where little arrives, little goes wrong."""
    wanted = part * max(LOAD.rates)
    return next(at for at, rate in zip(LOAD.seconds, LOAD.rates, strict=True) if rate >= wanted)


def _fault(kind: Kind, seconds: float, amount: float = 0.0, *, load: float = 0.85) -> tuple[Fault, ...]:
    return (Fault(kind=kind, at=_rising_to(load), seconds=seconds, amount=amount),)


MISHAPS = (
    Mishap("the driver is down for 10 min", _fault(Kind.OUTAGE, 600)),
    Mishap("the sink is 10 times slower for 20 min", _fault(Kind.SINK, 1200, 10)),
    # Early enough that what there is does not do for the peak.
    Mishap("no more executors for 50 min", _fault(Kind.DENIED, 3000, 0, load=0.65)),
    Mishap("nobody sees the lag for 20 min", _fault(Kind.BLIND, 1200)),
    Mishap("one batch takes 10 min", _fault(Kind.STALL, 600)),
    Mishap("a partition gets a fifth for an hour", _fault(Kind.HOT, 3600, 0.2)),
    Mishap("starts take 4 times as long", (Fault(kind=Kind.SLOW_START, at=0, seconds=4 * 3600, amount=4),)),
    Mishap("6 executors die", _fault(Kind.LOSS, 60, 6)),
    Mishap("the topic gets 48 partitions more", _fault(Kind.GROWTH, 600, 48)),
    # With less time to spare, one batch of all that waits would take longer than the rows are kept, on any
    # number of executors.
    Mishap(
        "40 min down, rows are kept for 2 h",
        _fault(Kind.OUTAGE, 2400),
        replace(DEFAULT, retention_seconds=7200.0),
    ),
)
