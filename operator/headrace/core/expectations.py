"""How long a change will be felt: ranges from what this job has shown, and on what they rest.

Nothing is guessed. A part that nobody has measured for this job is named, not filled in.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.api import StreamJobSpec, StreamJobStatus, StreamSavepointStatus
from headrace.api.quantities import duration_text


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What is known of the running job; None is unknown, never zero."""

    batch_seconds: float | None = None
    arrival_rows_per_second: float | None = None
    capacity_rows_per_second: float | None = None
    sinks: tuple[str, ...] = ()
    """As Spark describes them; empty where nobody told."""

    stopped_seconds: float | None = None
    """Until unread rows are deleted, if the job stopped now."""

    savepoint: StreamSavepointStatus | None = None
    """The newest good one: what copying the state took."""


NO_FIGURES = Figures()


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A range in seconds where there is one, the words for it, and what it rests on."""

    text: str
    low_seconds: float | None = None
    high_seconds: float | None = None
    rests_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Part:
    low: float
    high: float
    rests_on: str


def gap_of_live() -> Expectation:
    return Expectation(text="none: the driver is not touched", low_seconds=0.0, high_seconds=0.0)


def gap_of_upgrade(
    new: StreamJobSpec, status: StreamJobStatus, figures: Figures, *, warm: bool, repartition: bool = False
) -> Expectation:
    """Time without a commit, between the last batch of the old run and the first of the new one."""
    parts = [_drain(new, status, figures), _copy(figures, warm=warm), _start(status, warm=warm)]
    if repartition:
        parts.append(
            "repartition: all of the state is read and written once (how long that takes is not known here; "
            "the condition Rehearsed says how long it took on the copy)"
        )
    known = [part for part in parts if isinstance(part, _Part)]
    unknown = [part for part in parts if isinstance(part, str)]
    low, high = sum(part.low for part in known), sum(part.high for part in known)
    rests_on = [part.rests_on for part in known]
    if (last := last_gap(status)) is not None:
        rests_on.append(f"the last change of this job took {_shown(last)} from the end of one run to Ready")
    if unknown:
        text = "not known" if not known else f"{_range(low, high)}, and what is not known"
        return Expectation(text=f"{text}: {'; '.join(unknown)}", rests_on=tuple(rests_on))
    return Expectation(text=_range(low, high), low_seconds=low, high_seconds=high, rests_on=tuple(rests_on))


def catch_up(gap: Expectation, status: StreamJobStatus, figures: Figures) -> Expectation:
    """How long the rows of the gap keep the job behind, if they come and are worked off as they are now."""
    arrival, capacity = figures.arrival_rows_per_second, figures.capacity_rows_per_second
    behind = status.lag is not None and status.lag.band in ("Behind", "AtRisk")
    already = " It is behind already: this comes on top." if behind else ""
    if arrival is None or capacity is None:
        return Expectation(text="not known: the rates of this job could not be read." + already)
    rests_on = (
        f"{arrival:,.0f} rows/s come in; the last batch got through {capacity:,.0f} rows/s of its own time, "
        "which is the best it can do",
    )
    if capacity <= arrival:
        text = "it does not catch up at the rates of now: rows come as fast as they are worked off"
        return Expectation(text=text + already, rests_on=rests_on)
    if gap.low_seconds is None or gap.high_seconds is None:
        factor = arrival / (capacity - arrival)
        text = f"at least {factor:.2g} times as long as the gap" + already
        return Expectation(text=text, rests_on=rests_on)
    factor = arrival / (capacity - arrival)
    low, high = gap.low_seconds * factor, gap.high_seconds * factor
    return Expectation(
        text=f"{_range(low, high)}, at best{already}",
        low_seconds=low,
        high_seconds=high,
        rests_on=rests_on,
    )


def _drain(new: StreamJobSpec, status: StreamJobStatus, figures: Figures) -> _Part | str:
    if status.run is None or status.run.attempt is None or status.run.attempt.state == "Ended":
        return _Part(0.0, 0.0, "no driver runs: nothing is drained")
    if figures.batch_seconds is None:
        return (
            f"drain: the rest of a batch (how long one takes is not known here; at most {new.drain_timeout})"
        )
    longest = min(figures.batch_seconds, new.drain_timeout.seconds)
    return _Part(
        0.0, longest, f"drain: the rest of a batch; the last one took {_shown(figures.batch_seconds)}"
    )


def _copy(figures: Figures, *, warm: bool) -> _Part | str:
    taken = figures.savepoint
    if warm and (taken is None or taken.started_at is None or taken.completed_at is None):
        return "copy: what is new of the state since the rehearsed version waits"
    if taken is None or taken.started_at is None or taken.completed_at is None:
        return "copy: no savepoint has shown how long copying the state takes"
    seconds = max((taken.completed_at - taken.started_at).total_seconds(), 0.0)
    return _Part(0.0, seconds, f"copy: at most what the last savepoint took, {_shown(seconds)}")


def _start(status: StreamJobStatus, *, warm: bool) -> _Part | str:
    """From the order to start the driver to Ready, as this run itself did it."""
    run, ready = status.run, status.condition("Ready")
    began = run.attempt.started_at if run is not None and run.attempt is not None else None
    if began is None or ready is None or ready.status != "True" or ready.last_transition_time < began:
        return "start: this run has not been seen to start"
    seconds = (ready.last_transition_time - began).total_seconds()
    took_over = run is not None and run.attempt is not None and run.attempt.activation is not None
    match warm, took_over:
        case True, True:
            return _Part(seconds, seconds, f"start: this run took over warm, in {_shown(seconds)}")
        case True, False:
            told = (
                "start: next to none, the rehearsed version waits warm; without room for both "
                f"{_shown(seconds)}, as this driver took"
            )
            return _Part(0.0, seconds, told)
        case False, True:
            return "start: this run took over warm, so nobody has seen its driver start"
        case _:
            told = f"start: this driver took {_shown(seconds)} to be Ready; a new image is pulled on top"
            return _Part(seconds, seconds, told)


def last_gap(status: StreamJobStatus) -> float | None:
    """From the end of the run before to Ready, if this one has not been restarted since."""
    run, ready = status.run, status.condition("Ready")
    before = status.history[0] if status.history else None
    if run is None or run.attempt is None or run.attempt.number != 1 or before is None or ready is None:
        return None
    if before.run != run.number - 1 or before.ended_at is None or ready.status != "True":
        return None
    seconds = (ready.last_transition_time - before.ended_at).total_seconds()
    return seconds if seconds >= 0 else None


def _range(low: float, high: float) -> str:
    return _shown(high) if round(low) == round(high) else f"{_shown(low)} to {_shown(high)}"


def _shown(seconds: float) -> str:
    """Two figures are enough, and none below a second."""
    if seconds < 1:
        return "under 1s"
    rounded = round(seconds) if seconds < 100 else round(seconds / 10) * 10
    return duration_text(rounded)
