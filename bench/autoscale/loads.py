"""The traces of the contest: files of a directory, or made up where there is none."""

from __future__ import annotations

from pathlib import Path

from headrace.simulate.traces import SHAPES, Trace, made_up, read_trace

DAY_SECONDS = 86_400.0
# Published with a raised floor: a tenth of it is left, as the authors' own originals have it near zero.
RAISED_FLOOR, FLOOR_KEPT = "loadpred_", 0.1


def traces_of(directory: Path | None, files: list[Path]) -> list[Trace]:
    paths = [*sorted(directory.glob("*.csv")), *files] if directory is not None else files
    return [prepared(read_trace(path)) for path in paths]


def made_up_traces() -> list[Trace]:
    return [made_up(shape, seed) for shape in SHAPES for seed in (1, 2)]


def prepared(trace: Trace) -> Trace:
    """At most a day: the one, from midnight of the trace, that holds the highest value."""
    if trace.name.startswith(RAISED_FLOOR):
        trace = trace.expanded(FLOOR_KEPT)
    if trace.length_seconds > 1.2 * DAY_SECONDS:
        peak_at = trace.seconds[trace.rates.index(max(trace.rates))] - trace.seconds[0]
        start = min(peak_at // DAY_SECONDS * DAY_SECONDS, trace.length_seconds - DAY_SECONDS)
        trace = trace.cut(start, DAY_SECONDS)
    return Trace(short_name(trace.name), trace.seconds, trace.rates)


def short_name(name: str) -> str:
    words = name.removeprefix("daedalus_").removeprefix(RAISED_FLOOR).removeprefix("nab_").split("_")
    kept = [word for word in words if not any(letter.isdigit() for letter in word) and word != "max"]
    return "-".join(kept) or name
