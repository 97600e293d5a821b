"""What goes wrong in a simulated run, and when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    OUTAGE = "outage"  # the driver is down
    SINK = "sink"  # the sink takes `amount` times as long
    DENIED = "denied"  # at most `amount` executors get a place
    BLIND = "blind"  # nobody can see the lag
    STALL = "stall"  # one batch takes all of the time
    HOT = "hot"  # one partition gets the part `amount` of what arrives
    SLOW_START = "slow start"  # executors take `amount` times as long to start
    LOSS = "loss"  # `amount` executors die at once
    GROWTH = "growth"  # the topic gets `amount` partitions more, and keeps them


@dataclass(frozen=True, kw_only=True)
class Fault:
    kind: Kind
    at: float
    seconds: float
    amount: float = 0.0

    def holds(self, now: float) -> bool:
        return self.at <= now < self.at + self.seconds
