"""Numbers as people read them."""

from __future__ import annotations

_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def amount(value: float | None) -> str:
    if value is None:
        return "an unknown number of"
    for size, unit in _UNITS:
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def rate(value: float | None) -> str:
    return "an unknown rate" if value is None else f"{amount(value)} rows/s"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h"


def manage(number: int) -> str:
    return "1 executor manages" if number == 1 else f"{number} executors manage"


def executors(number: int) -> str:
    return "1 executor" if number == 1 else f"{number} executors"
