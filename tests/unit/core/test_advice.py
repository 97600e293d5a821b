"""What of a decision is worth a write of the status, and when."""

from datetime import UTC, datetime, timedelta

from headrace.core.advice import Advice, advice_of, published
from headrace.core.autoscale import Decision, Numbers, Reason

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_decision(
    reason: Reason = Reason.ENOUGH,
    *,
    asked: int = 3,
    target: int = 3,
    emergency: bool = False,
    **numbers: float,
) -> Decision:
    known = {"lag_rows": 10, "lag_seconds": 2.0, **numbers}
    return Decision(
        at=0.0,
        asked=asked,
        target=target,
        reason=reason,
        message=f"stays at 3 executors: {reason}.",
        numbers=Numbers(**known),  # type: ignore[arg-type]
        emergency=emergency,
    )


def advised(decision: Decision, *, after: float = 0.0, before: Advice | None = None) -> Advice:
    return advice_of(decision, at=NOW + timedelta(seconds=after), objective_seconds=60, before=before)


def test_calm_reasons_come_and_go_unseen():
    first = advised(a_decision(Reason.ENOUGH))
    for reason in (Reason.HOLDING_BEFORE_DOWN, Reason.WAITING_FOR_EXECUTORS, Reason.LEARNING):
        assert published(first, advised(a_decision(reason), after=1000)) is first


def test_a_new_target_is_shown_at_once():
    first = advised(a_decision())
    up = advised(a_decision(Reason.BACKLOG, target=5), after=15)
    assert published(first, up).target == 5


def test_a_word_is_shown_at_once_and_the_next_one_minutes_later():
    first = advised(a_decision())
    limited = published(first, advised(a_decision(Reason.AT_MAXIMUM), after=15))
    assert limited.limit == "AtMaximum"
    assert published(limited, advised(a_decision(Reason.ENOUGH), after=200)) is limited
    assert published(limited, advised(a_decision(Reason.ENOUGH), after=315)).limit is None


def test_a_new_target_does_not_make_a_word_wait():
    moved = published(advised(a_decision()), advised(a_decision(Reason.BACKLOG, target=5), after=15))
    unknown = advised(a_decision(Reason.LAG_UNKNOWN, asked=3, target=5), after=30)
    assert published(moved, unknown).unknown is not None


def test_a_danger_waits_for_nothing():
    first = published(advised(a_decision()), advised(a_decision(Reason.AT_MAXIMUM), after=15))
    danger = a_decision(Reason.DATA_LOSS_NEAR, emergency=True, seconds_to_data_loss=600.0)
    shown = published(first, advised(danger, after=30))
    assert shown.band == "AtRisk"
    assert shown.loss == "the source deletes unread rows in 10 min as things go"


def test_bands():
    assert advised(a_decision()).band == "Ok"
    behind = advised(a_decision(lag_seconds=61.0))
    assert behind.band == "Behind" and "the oldest of 10 unread rows waits for 61 s" in behind.band_message
    unknown = advised(a_decision(Reason.LAG_UNKNOWN))
    assert (unknown.band, unknown.band_message) == ("Unknown", "LagUnknown.")
    # Clearly within the objective, not just so: a band does not flutter.
    assert advised(a_decision(lag_seconds=55.0), before=behind).band == "Behind"
    assert advised(a_decision(lag_seconds=40.0), before=behind).band == "Ok"
