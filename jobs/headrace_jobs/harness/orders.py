"""The order that makes a candidate the writer, as it comes to the agent. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass


class OrderInvalid(Exception):
    """What was asked for is no order; the message names the field."""


class NotInStandby(Exception):
    """It cannot be activated now; the message says why."""


@dataclass(frozen=True)
class Order:
    """Which attempt the candidate becomes."""

    run: int
    attempt: int
    epoch: int
    accept_pending: bool = False


def parse_order(body: bytes) -> Order:
    try:
        content = json.loads(body)
    except ValueError:
        raise OrderInvalid("the body is not JSON") from None
    if not isinstance(content, dict):
        raise OrderInvalid("the body is not an object")
    unknown = content.keys() - {"run", "attempt", "epoch", "acceptPending"}
    if unknown:
        raise OrderInvalid(f"unknown: {', '.join(sorted(unknown))}")
    for name in ("run", "attempt", "epoch"):
        value = content.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise OrderInvalid(f"{name}: {value!r} is not a whole number of at least 1")
    accept_pending = content.get("acceptPending", False)
    if not isinstance(accept_pending, bool):
        raise OrderInvalid(f"acceptPending: {accept_pending!r} is not true or false")
    return Order(content["run"], content["attempt"], content["epoch"], accept_pending)
