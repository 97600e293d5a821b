"""Since when a query is behind: from what its sources told, never made up."""

from headrace_jobs.harness.lag_age import OffsetHistory

START = 1_700_000_000.0


def history(*told: tuple[float, dict[str, int] | None, dict[str, int]]) -> OffsetHistory:
    """(seconds after the start, ends of the partitions, what was read of them)"""
    made = OffsetHistory()
    for seconds, ends, read in told:
        made.note(START + seconds, ends and {name: (end, read[name]) for name, end in ends.items()})
    return made


def since(made: OffsetHistory) -> float | None:
    found = made.behind_since()
    return None if found is None else round(found - START, 3)


def test_before_anything_was_told_nothing_is_known():
    assert OffsetHistory().behind_since() is None


def test_what_was_read_then_tells_since_when():
    made = history((0, {"0": 100}, {"0": 100}), (10, {"0": 200}, {"0": 100}), (20, {"0": 300}, {"0": 150}))
    assert since(made) == 5


def test_the_partition_that_waits_longest_speaks_for_all():
    made = history(
        (0, {"0": 0, "1": 0}, {"0": 0, "1": 0}),
        (60, {"0": 60, "1": 60}, {"0": 60, "1": 6}),
    )
    assert since(made) == 6


def test_when_all_that_was_told_is_read_the_rest_came_later():
    assert since(history((0, {"0": 5}, {"0": 5}), (30, {"0": 9}, {"0": 9}))) == 30


def test_behind_from_the_beginning_is_reckoned_at_the_rate_of_today():
    # 10 rows a second come; 600 were unread at the first look: a minute's worth.
    made = history((0, {"0": 600}, {"0": 0}), (30, {"0": 900}, {"0": 0}))
    assert since(made) == -60


def test_behind_from_the_beginning_while_nothing_comes_is_at_least_since_the_first_look():
    assert since(history((0, {"0": 600}, {"0": 0}), (30, {"0": 600}, {"0": 100}))) == 0


def test_one_look_alone_cannot_tell():
    assert since(history((0, {"0": 600}, {"0": 0}))) is None


def test_a_source_that_does_not_tell_its_end_is_unknown():
    assert since(history((0, {"0": 1}, {"0": 1}), (10, None, {"0": 1}))) is None


def test_new_partitions_begin_a_new_history():
    made = history(
        (0, {"0": 10}, {"0": 0}),
        (60, {"0": 20, "1": 5}, {"0": 0, "1": 0}),
    )
    assert since(made) is None


def test_a_long_life_is_kept_short():
    ticks = [(float(second), {"0": second}, {"0": second}) for second in range(0, 20_000, 2)]
    made = history(*ticks, (20_000.0, {"0": 20_000}, {"0": 0}))
    assert len(made._samples) == 180
    # What lies before the history is reckoned at the rate within it: here, the truth.
    assert since(made) == 0
