"""Where queries begin that have no checkpoint: at a time, at offsets, or not at all."""

import json

import pytest

from headrace_jobs.harness.rules import Refused, StartRefused
from headrace_jobs.harness.runfile import Start
from headrace_jobs.harness.start import check_seed, check_source, check_topics, kafka_options
from headrace_jobs.store import LastBatches, Seed

TIME = Start(timestamp_millis=1769846400000)
OFFSETS = Start(offsets={"clicks": {"a": {"0": 5, "1": -2}, "b": {"0": 7}}})


def test_a_time_is_for_every_query_and_an_idle_partition_is_no_error():
    assert kafka_options(TIME, "any", {"subscribe": "a"}) == {
        "startingtimestamp": "1769846400000",
        "startingoffsetsbytimestampstrategy": "latest",
    }


@pytest.mark.parametrize(
    ("options", "topics"),
    [
        ({"subscribe": "a"}, {"a": {"0": 5, "1": -2}}),
        ({"subscribe": "a, b"}, {"a": {"0": 5, "1": -2}, "b": {"0": 7}}),
        ({"subscribepattern": "[bc]"}, {"b": {"0": 7}}),
        ({"assign": '{"b":[0]}'}, {"b": {"0": 7}}),
    ],
)
def test_each_reader_gets_the_offsets_of_its_own_topics(options, topics):
    assert json.loads(kafka_options(OFFSETS, "clicks", options)["startingoffsets"]) == topics


@pytest.mark.parametrize(
    ("query", "options", "words"),
    [
        ("click", {"subscribe": "a"}, "says nothing of query click; it names clicks"),
        ("clicks", {"subscribe": "a,c"}, "says nothing of c"),
        ("clicks", {"subscribepattern": "x.*"}, "the topics that it reads"),
    ],
)
def test_what_is_missing_is_named(query, options, words):
    with pytest.raises(StartRefused, match=words):
        kafka_options(OFFSETS, query, options)


def test_a_topic_that_nobody_reads_is_a_mistake():
    check_topics(OFFSETS, "clicks", [{"subscribe": "a"}, {"subscribe": "b"}])
    with pytest.raises(StartRefused, match="the topic b, which the query does not read"):
        check_topics(OFFSETS, "clicks", [{"subscribe": "a"}])


@pytest.mark.parametrize(("start", "what"), [(TIME, "a time"), (OFFSETS, "offsets")])
def test_a_source_that_cannot_is_refused_with_the_query(start, what):
    check_source(start, "clicks", "kafka", can_start=True)
    with pytest.raises(StartRefused, match=f"query clicks reads rate, which cannot start at {what}"):
        check_source(start, "clicks", "rate", can_start=False)


def test_a_query_that_is_not_in_what_the_job_begins_with_does_not_begin_from_nothing():
    seed = Seed("_savepoints/n", {"clicks": LastBatches(3, 3)}, 9, 9, 0, binding=True)
    check_seed(seed, "clicks")
    check_seed(None, "views")
    check_seed(Seed("run-1", {}, 0, 0, 0), "views")  # an upgrade may add queries
    with pytest.raises(Refused, match="holds the queries clicks and none of the name views"):
        check_seed(seed, "views")
