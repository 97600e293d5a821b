"""The work queue: once, in order, one at a time, and patient."""

from headrace.runtime.queue import Backoff, WorkQueue


def a_queue() -> WorkQueue[str]:
    return WorkQueue(chance=lambda: 1.0, backoff=Backoff(first_seconds=1, longest_seconds=8))


def test_a_key_is_in_it_once_and_in_order():
    queue = a_queue()
    for key in ("a", "b", "a"):
        queue.add(key, now=0)
    assert [queue.take(now=0) for _ in range(3)] == ["a", "b", None]


def test_what_is_asked_for_during_a_pass_is_done_once_more_afterwards():
    queue = a_queue()
    queue.add("a", now=0)
    assert queue.take(now=0) == "a"
    queue.add("a", now=1)
    queue.add("a", now=2)
    assert queue.take(now=3) is None  # never two passes of one job at a time
    queue.done("a", now=3)
    assert queue.take(now=3) == "a"
    queue.done("a", now=4)
    assert queue.take(now=4) is None


def test_failures_wait_longer_each_time_up_to_a_limit():
    queue = a_queue()
    queue.add("a", now=0)
    waits, now = [], 0.0
    for _ in range(5):
        assert queue.take(now=now) == "a"
        queue.done("a", now=now, failed=True)
        due = queue.next_alarm()
        assert due is not None
        waits.append(due - now)
        assert queue.take(now=due - 0.01) is None
        now = due
    assert waits == [1, 2, 4, 8, 8]


def test_a_success_forgets_the_failures():
    queue = a_queue()
    queue.add("a", now=0)
    for now in (0, 1):
        assert queue.take(now=now) == "a"
        queue.done("a", now=now, failed=True)
    assert queue.take(now=3) == "a"
    queue.done("a", now=3)
    queue.add("a", now=4)
    assert queue.take(now=4) == "a"
    queue.done("a", now=4, failed=True)
    assert queue.next_alarm() == 5


def test_a_noisy_object_cannot_hurry_a_pass_that_fails():
    queue = a_queue()
    queue.add("a", now=0)
    queue.take(now=0)
    queue.add("a", now=0)
    queue.done("a", now=0, failed=True)
    queue.add("a", now=0.1)
    assert queue.take(now=0.5) is None
    assert queue.take(now=1) == "a"


def test_news_of_one_that_failed_often_is_looked_at_soon_but_not_at_once():
    """It may be the edit that ends the trouble; or our own status, which would be a hot loop."""
    queue, now = a_queue(), 0.0
    for _ in range(12):
        queue.add("a", now=now)
        queue.take(now=now)
        queue.done("a", now=now, failed=True)
        now = queue.next_alarm() or now
    failed_at = now
    queue.take(now=now)
    queue.add("a", now=now)
    queue.done("a", now=now, failed=True)
    assert queue.take(now=failed_at + 4.9) is None
    assert queue.take(now=failed_at + 5) == "a"
    queue.done("a", now=failed_at + 5, failed=True)
    queue.add("a", now=failed_at + 6)
    assert queue.take(now=failed_at + 9.9) is None
    assert queue.take(now=failed_at + 10) == "a"
    queue.done("a", now=failed_at + 10, failed=True)
    assert queue.take(now=failed_at + 17) is None  # without news it has its time
    queue.add("a", now=failed_at + 17)
    assert queue.take(now=failed_at + 17) == "a"


def test_of_several_alarms_the_earliest_counts_and_a_pass_makes_it_void():
    queue = a_queue()
    queue.add_at("a", 10)
    queue.add_at("a", 5)
    queue.add_at("a", 20)
    assert queue.next_alarm() == 5
    queue.add("a", now=1)
    assert queue.take(now=1) == "a"
    queue.done("a", now=1)
    assert queue.next_alarm() is None


def test_a_job_that_is_gone_has_no_alarms():
    queue = a_queue()
    queue.add_at("a", 5)
    queue.forget("a")
    assert queue.take(now=10) is None


def test_its_age_is_that_of_the_oldest():
    queue = a_queue()
    assert queue.oldest_wait(now=5) == 0
    queue.add("a", now=1)
    queue.add("b", now=4)
    assert (queue.depth(), queue.oldest_wait(now=5)) == (2, 4)


def test_jobs_that_failed_together_do_not_come_back_together():
    assert {Backoff().wait(1, chance) for chance in (0.0, 1.0)} == {0.25, 0.5}
