"""What a state means: what Spark's own plans cannot easily show. Real plans: tests/spark/rehearsal."""

import json

from headrace_jobs.harness.meaning import (
    Detail,
    Meaning,
    Operator,
    differences,
    meaning_from_json,
    meaning_of,
)

CATALYST = "org.apache.spark.sql.catalyst"


def expression(kind, *children, **fields):
    """As Spark writes it: one list, each before its children."""
    own = {"class": f"{CATALYST}.expressions.{kind}", "num-children": len(children), **fields}
    return [own, *(node for child in children for node in child)]


def column(name, number):
    return expression("AttributeReference", name=name, exprId={"id": number})


def plan(kind, child=(), **fields):
    return [
        {"class": f"{CATALYST}.plans.logical.{kind}", "num-children": 1 if child else 0, **fields},
        *child,
    ]


def read(nodes, described=""):
    return meaning_of(
        nodes, described, output_mode="update", digests={}, spark_version="4.2", python_version="3.11"
    )


def deduplicated(key, source):
    return plan("Deduplicate", source, keys=[key])


SOURCE = plan("StreamingRelationV2", output=[column("value", 0)])


def test_a_plan_that_doubles_with_every_step_is_read_all_the_same():
    nodes = SOURCE
    for number in range(60):
        previous = column("x", number)
        doubled = expression(
            "Alias", expression("Add", previous, previous), name="x", exprId={"id": number + 1}
        )
        nodes = plan("Project", nodes, projectList=[doubled])
    one = read(deduplicated(column("x", 60), nodes))
    other = read(deduplicated(column("x", 59), nodes))
    assert differences("q", one, one) == []
    assert differences("q", one, other) == ["query q: the key x is computed in another way"]


def test_what_is_no_stream_has_no_state():
    static = plan("LocalRelation", output=[column("value", 0)])
    assert read(deduplicated(column("value", 0), static)).operators == ()


def test_delays_are_read_from_the_text_with_and_without_ids():
    mark = plan("EventTimeWatermark", SOURCE, eventTime=column("at", 0))
    texts = [
        "~EventTimeWatermark 0bb96b5e-cbcf-4051-acf5-247f5b4f9efa, at#0: timestamp, 10 seconds\n+- ~x",
        "EventTimeWatermark at#0: timestamp, 10 seconds",
        ":- ~EventTimeWatermark at#0-T5000ms: timestamp, 10 seconds",
    ]
    for text in texts:
        (operator,) = read(mark, text).operators
        assert [detail.shown for detail in operator.details] == ["at", "10 seconds"]


def test_it_survives_the_store_and_an_unknown_format_is_no_meaning():
    meaning = Meaning("4.2", "3.11", "append", (Operator("Aggregate", (Detail("key", "k", "k", "k"),)),))
    told = json.loads(json.dumps(meaning.to_json()))
    assert meaning_from_json(told) == meaning
    assert meaning_from_json(told | {"format": 99}) is None


def reading(*sources):
    return Meaning("4.2", "3.11", "append", (), sources or None)


def test_other_sources_are_told_with_the_old_and_the_new():
    assert differences("q", reading("Kafka topics a"), reading("Kafka topics a")) == []
    assert differences("q", reading("Kafka topics a, b"), reading("Kafka topics a")) == [
        "query q: its sources were Kafka topics a, b; they are Kafka topics a, "
        "and its offsets are of the old ones"
    ]
    one, other = "files in /in", "files in /more"
    assert differences("q", reading(one, other), reading(other, one)) == [
        f"query q: its sources were {one}, and {other}; they are {other}, and {one}, "
        "and Spark knows them by their order"
    ]


def test_of_a_run_that_did_not_note_its_sources_only_the_state_is_compared():
    told = json.loads(json.dumps(reading("Kafka topics a").to_json()))
    assert meaning_from_json(told) == reading("Kafka topics a")
    del told["sources"]
    before = meaning_from_json(told)
    assert before is not None
    assert before.sources is None
    assert differences("q", before, reading("Kafka topics b")) == []
