"""The simulated world, and `headrace simulate` on top of it."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.autoscale.contest import Entry, Spread, dominating
from bench.autoscale.loads import prepared
from click.testing import CliRunner

from headrace.cli.main import main
from headrace.core.autoscale import Memory, Reason
from headrace.simulate.batches import BatchCost
from headrace.simulate.faults import Fault, Kind
from headrace.simulate.job import Job, as_job
from headrace.simulate.parameters import DEFAULT
from headrace.simulate.pool import Pool
from headrace.simulate.scaler import Fixed
from headrace.simulate.scenario import Scenario
from headrace.simulate.traces import SHAPES, BadTrace, Trace, made_up, read_trace


def an_hour(shape="day", **changes) -> Scenario:
    return Scenario(trace=made_up(shape, 3, hours=1.5), parameters=replace(DEFAULT, **changes))


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return an_hour()


def test_the_same_seed_is_the_same_run_and_another_one_is_not(scenario):
    first, again, other = (scenario.play(scenario.headrace(), seed) for seed in (1, 1, 2))
    assert first == again
    assert first.executor_hours != other.executor_hours


def test_more_executors_do_more_but_each_does_less(scenario):
    can = scenario.sustained
    assert all(before < after for before, after in pairwise(can[1:13]))
    assert can[12] / 12 < 0.8 * can[1]


def test_the_peak_takes_the_part_of_the_largest_number_that_it_should(scenario):
    assert scenario.peak == pytest.approx(DEFAULT.peak_of_max * scenario.sustained[-1], rel=0.05)


def test_what_is_enough_is_never_late_and_what_is_not_is(scenario):
    assert scenario.play(Fixed(DEFAULT.max_executors), 1).over_objective_pct == 0
    assert scenario.play(Fixed(1), 1).over_objective_pct > 50


def test_executors_cost_from_the_moment_they_are_asked_for(scenario):
    found = scenario.play(Fixed(4), 1)
    assert found.executor_hours == pytest.approx(4 * found.hours, rel=0.02)


def test_a_batch_with_a_hot_partition_takes_longer():
    even = BatchCost(DEFAULT, 1e-3, 10_000, seed=1)
    usual = even.usual_seconds(50_000, 10)
    even.shares = [0.5, *(0.5 / 47 for _ in range(47))]
    assert even.usual_seconds(50_000, 10) > 1.5 * usual


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (Fault(kind=Kind.BLIND, at=1800, seconds=900), Reason.LAG_UNKNOWN),
        (Fault(kind=Kind.STALL, at=1800, seconds=900), Reason.BATCH_STUCK),
        (Fault(kind=Kind.DENIED, at=0, seconds=5400, amount=2), Reason.QUOTA_BOUND),
    ],
    ids=lambda one: one.kind.value if isinstance(one, Fault) else one.value,
)
def test_faults_are_seen_for_what_they_are(fault, seen):
    scenario = replace(an_hour("ramp", initial_executors=2), faults=(fault,))
    scaler = scenario.headrace()
    scenario.play(scaler, 1)
    during = [one for one in scaler.decisions if fault.holds(one.at)]
    assert seen in {one.reason for one in during}
    if seen is not Reason.QUOTA_BOUND:
        assert all(not one.moves for one in during if one.reason is seen)


def test_after_an_outage_the_backlog_is_worked_off_with_more_executors():
    fault = Fault(kind=Kind.OUTAGE, at=1800, seconds=600)
    scenario = replace(an_hour("step"), faults=(fault,))
    scaler = scenario.headrace()
    found = scenario.play(scaler, 1)
    during = [one for one in scaler.decisions if fault.at + 90 < one.at < fault.at + fault.seconds]
    assert {one.reason for one in during} == {Reason.BATCH_STUCK}
    after = max(point.asked for point in found.points if 2400 < point.at < 3000)
    assert after > during[-1].target
    assert found.recovery_seconds is not None and found.recovery_seconds < 900


def test_rows_that_the_source_deletes_are_counted():
    short = replace(an_hour(retention_seconds=300.0), faults=(Fault(kind=Kind.OUTAGE, at=600, seconds=900),))
    assert short.play(Fixed(20), 1).data_loss_events >= 1
    assert replace(short, faults=()).play(Fixed(20), 1).data_loss_events == 0


def test_a_job_can_be_moved_to_another_operator_in_the_middle(scenario):
    scaler = scenario.headrace()
    scenario.play(scaler, 1)
    stored = json.loads(json.dumps(scaler.memory.to_json()))
    assert Memory.from_json(stored).to_json() == stored


@pytest.mark.parametrize("shape", SHAPES)
def test_made_up_traces_differ_by_seed(shape):
    assert made_up(shape, 1) == made_up(shape, 1) != made_up(shape, 2)


@pytest.mark.parametrize(
    "text",
    [
        "seconds,rows_per_second\n0,5\n600,10\n1200,5\n",
        "0|5\n600|10\n1200|5\n",
        "date;value\n2020-01-01 00:00:00;5\n2020-01-01 00:10:00;10\n2020-01-01 00:20:00;5\n",
        # In Berlin an hour comes twice in that night: a date without a zone is UTC.
        "2020-10-25 02:55:00,5\n2020-10-25T03:05:00Z,10\n2020-10-25 03:15:00,5\n",
        '# what it is\n"seconds","rows"\r\n"0","5"\r\n"600","10"\r\n"1200","5"\r\n',
    ],
    ids=["with a header", "bars", "dates", "dates without a zone", "quotes, notes and Windows"],
)
def test_a_trace_may_be_written_in_several_ways(tmp_path, text):
    path = tmp_path / "load.csv"
    path.write_text(text)
    trace = read_trace(path)
    assert (trace.length_seconds, trace.rates) == (1200, (5, 10, 5))
    assert trace.by_second()[300] == pytest.approx(7.5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0,5\n600,many\n", "load.csv:2: expected two columns, seconds and rows per second"),
        ("0,5\n600,-1\n", "load.csv:2: rows per second must be a number from 0 to"),
        ("0,5\n600,nan\n", "load.csv:2: rows per second must be a number from 0 to"),
        ("600,5\n0,5\n", "load.csv:2: the seconds must rise"),
        ("0,5\n60,5\n", "at least two lines and ten minutes"),
        ("0,0\n900,0\n", "all rates are 0"),
        ("", "found 0 lines of numbers, 0 seconds"),
        ("seconds,rows\n", "found 0 lines of numbers, 0 seconds"),
        ("0,5\n", "found 1 line of numbers, 0 seconds"),
        ("0,5\nnan,7\n900,5\n", "load.csv:2: expected two columns"),
        ("nan,5\n900,5\n", "load.csv:1: expected two columns"),
        ("0,many\n900,5\n", "load.csv:1: expected two columns"),
        ("0,5\n900,inf\n", "load.csv:2: rows per second must be a number from 0 to"),
        ("0,5\n900,1e300\n", "load.csv:2: rows per second must be a number from 0 to"),
        (
            "0,5\n0,6\n900,5\n",
            "after an equal or later one: sort the lines",
        ),
        ("0,0.01\n900,0.02\n", "the highest rate is 0.02 rows per second, and at least 1 is needed"),
    ],
)
def test_a_trace_that_is_none_is_refused_with_its_line(tmp_path, text, problem):
    path = tmp_path / "load.csv"
    path.write_text(text)
    with pytest.raises(BadTrace, match=problem):
        read_trace(path)
    refused = CliRunner().invoke(main, ["simulate", str(path)])
    assert refused.exit_code == 2
    assert problem in refused.output


def test_a_long_trace_is_cut_to_the_day_with_its_peak():
    points = [(hour * 3600.0, 1.0 if hour != 60 else 9.0) for hour in range(24 * 5)]
    trace = prepared(Trace("x", tuple(at for at, _ in points), tuple(rate for _, rate in points)))
    assert trace.length_seconds == 86_400
    assert max(trace.rates) == 9.0


def a_trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    path.write_text("seconds,rows\n0,1000\n1200,1000\n1800,9000\n3000,9000\n3600,1000\n5400,1000\n")
    return path


def test_headrace_simulate_shows_a_table_the_decisions_and_a_picture(tmp_path):
    path = a_trace_file(tmp_path)
    shown = CliRunner().invoke(main, ["simulate", str(path), "--max", "12", "--lag-objective", "90s"])
    assert shown.exit_code == 0, shown.output
    assert "over objective %" in shown.output
    assert "rows/s arrive" in shown.output and "→" in shown.output
    picture = ElementTree.parse(path.with_suffix(".svg"))
    texts = {element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"Executors asked for", "objective 90 s", "headrace"} <= texts


def test_headrace_simulate_takes_the_speed_of_an_executor(tmp_path):
    path = a_trace_file(tmp_path)
    chosen = ["simulate", str(path), "--rows-per-executor", "3000", "--plot", str(tmp_path / "p.svg")]
    shown = CliRunner().invoke(main, chosen)
    assert shown.exit_code == 0, shown.output
    said = shown.output.split("1 executor manages ")[1].split(" ")[0]
    assert float(said.removesuffix("k")) == pytest.approx(3, rel=0.02)
    assert (tmp_path / "p.svg").exists()


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (["--lag-objective", "10s"], "no number of executors keeps an objective of 10 s"),
        (["--rows-per-executor", "1e9"], "1G rows/s per executor cannot be simulated with this load"),
        (["--lag-objective", "30s", "--rows-per-executor", "3000"], None),
    ],
    ids=["an objective shorter than a trigger", "an executor that is too fast", "what can be"],
)
def test_what_cannot_be_is_noted(tmp_path, options, note):
    shown = CliRunner().invoke(main, ["simulate", str(a_trace_file(tmp_path)), *options])
    assert shown.exit_code == 0, shown.output
    notes = shown.output.split("\n\n")[0].splitlines()[1:]
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


def test_a_fixed_number_is_there_from_the_beginning_and_no_percentile_is_above_the_highest(tmp_path):
    shown = CliRunner().invoke(main, ["simulate", str(a_trace_file(tmp_path))])
    (static,) = (line.split() for line in shown.output.splitlines() if line.startswith("static at peak"))
    *_, p99, highest, actions = (float(number) for number in static[3:])
    assert actions == 0
    assert p99 <= highest


def test_a_file_that_is_no_text_is_named_as_such(tmp_path):
    path = tmp_path / "load.csv"
    path.write_bytes(b"\x89PNG\x00\xff")
    refused = CliRunner().invoke(main, ["simulate", str(path)])
    assert refused.exit_code == 2
    assert "load.csv: is no text: a trace is a CSV file, two columns" in refused.output


def test_a_trace_in_milliseconds_is_refused_before_it_takes_hours(tmp_path):
    path = tmp_path / "load.csv"
    path.write_text("1577836800000,5\n1577840400000,9\n")
    refused = CliRunner().invoke(main, ["simulate", str(path)])
    assert refused.exit_code == 2
    assert "42 days long, and 31 are the most" in refused.output and "by 1000" in refused.output


A_JOB = Job(
    trigger_seconds=60.0,
    fixed_seconds=6.0,
    startup_seconds=97.0,
    shuffle_partitions=4,
    retention_seconds=1800.0,
)


def test_a_job_that_is_known_is_simulated_as_it_is():
    p = as_job(replace(DEFAULT, partitions=12), A_JOB)
    assert (p.trigger_seconds, p.retention_seconds, p.shuffle_partitions) == (60, 1800, 4)
    # Of starts and batches the means are those that were learned.
    cost = BatchCost(replace(p, hiccup_probability=0.0), 1e-12, 1000.0, seed=1)
    batches = [cost.took(1.0, executors=2).seconds for _ in range(400)]
    assert sum(batches) / len(batches) == pytest.approx(6.0, rel=0.05)
    pool = Pool(p, seed=1)
    pool.ask(410, 0.0, admitted=1000, slower=1.0)
    starts = [pod.ready_at for pod in pool.pods if pod.ready_at > 0]
    assert sum(starts) / len(starts) == pytest.approx(97.0, rel=0.1)


def test_a_job_without_state_has_no_shuffle_and_nothing_to_load():
    stateless = replace(A_JOB, shuffle_partitions=None, retention_seconds=None, trigger_seconds=0.0)
    p = as_job(replace(DEFAULT, partitions=400), stateless)
    assert (p.read_part, p.reload_seconds, p.trigger_seconds) == (1.0, 0.0, 1.0)
    scenario = Scenario(trace=made_up("step", 1, hours=1.0), parameters=p)
    scaler = scenario.headrace()
    scenario.play(scaler, 1)
    assert not [one for one in scaler.decisions if one.reason is Reason.PARTITION_BOUND]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--lag-objective", "soon"], "--lag-objective soon: is not a duration like 30s"),
        (["--min", "9", "--max", "3"], "--min 9 is above --max 3"),
    ],
)
def test_options_that_make_no_sense_are_named(tmp_path, options, problem):
    refused = CliRunner().invoke(main, ["simulate", str(a_trace_file(tmp_path)), *options])
    assert refused.exit_code == 2
    assert problem in refused.output


@pytest.mark.parametrize(
    ("peer", "beats"),
    [((1.1, 0.0), True), ((1.2, 0.0), False), ((1.1, 0.1), False), ((1.3, 0.0), False)],
    ids=["cheaper and as early", "the same", "cheaper but later", "dearer"],
)
def test_a_peer_dominates_only_if_it_is_better_in_one_and_no_worse_in_the_other(peer, beats):
    entries = {"headrace": an_entry("headrace", 1.2, 0.0), "peer": an_entry("peer", *peer)}
    assert (dominating(entries) == ["peer"]) is beats


def an_entry(name: str, cost: float, late: float) -> Entry:
    nothing = Spread(0.0, 0.0)
    return Entry(
        scaler=name,
        results=[],
        cost_over_oracle=Spread(cost, 0.0),
        executor_hours=nothing,
        over_objective_pct=Spread(late, 0.0),
        lag_p99_seconds=nothing,
        actions_per_hour=nothing,
        data_loss_events=0,
        recovery_seconds=None,
    )
