"""What a source reads, told so that two versions compare: the data, and nothing that may change freely."""

import pytest

from headrace_jobs.harness.source_identity import source_in_words, sources_of


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("kafka", {"subscribe": "b, a,a"}, "Kafka topics a, b"),
        ("kafka", {"subscribepattern": "orders-.*"}, "Kafka topics like orders-.*"),
        ("kafka", {"assign": '{"b": [0], "a": [1, 0]}'}, "Kafka partitions a/0, a/1, b/0"),
        ("kafka", {"assign": "not json"}, "Kafka partitions not json"),
        ("FileSource[/data/in]", {"path": "/data/in"}, "files in /data/in"),
        ("FileSource[file:///data/in/]", {}, "files in /data/in"),
        ("FileSource[file:/data/in]", {}, "files in /data/in"),
        ("FileSource[s3a://bucket/in/]", {}, "files in s3a://bucket/in"),
        ("delta", {"path": "s3a://bucket/table", "maxfilespertrigger": "3"}, "delta s3a://bucket/table"),
        ("kinesis", {"streamname": "clicks", "awssecretkey": "s3cret"}, "kinesis clicks"),
        ("rate", {"rowspersecond": "10"}, "rate"),
    ],
)
def test_what_is_read_in_words(name, options, told):
    assert source_in_words(name, options) == told


def test_a_table_is_known_by_its_name_whatever_its_connector():
    assert source_in_words("iceberg", {"path": "/elsewhere"}, "shop.orders") == "table shop.orders"


class Given:
    """Scala's Option, Map and Seq, as far as they are asked."""

    def __init__(self, value):
        self.value = value

    def isDefined(self):
        return self.value is not None

    def get(self):
        return self.value

    def size(self):
        return len(self.value)

    def apply(self, index):
        return self.value[index]

    def iterator(self):
        return Pairs(list(self.value.items()))


class Pairs:
    def __init__(self, items):
        self.items = items

    def hasNext(self):
        return bool(self.items)

    def next(self):
        pair = self.items.pop(0)
        return type("Pair", (), {"_1": lambda _: pair[0], "_2": lambda _: pair[1]})()


class Leaf:
    """A Java object that answers without arguments."""

    def __init__(self, kind, **answers):
        self.kind, self.answers = kind, answers

    def getClass(self):
        return Leaf(None, getSimpleName=self.kind)

    def __getattr__(self, name):
        return lambda: self.answers[name]


def test_the_sources_of_a_plan_in_their_order_and_nothing_that_is_no_stream():
    files = Leaf(None, options=Given({"Path": "/in"}), catalogTable=Given(None))
    leaves = [
        Leaf("LocalRelation"),
        Leaf(
            "StreamingRelationV2", sourceName="kafka", extraOptions={"subscribe": "a"}, identifier=Given(None)
        ),
        Leaf("StreamingRelation", sourceName="FileSource[/in]", dataSource=files),
    ]
    assert sources_of(Leaf("Join", collectLeaves=Given(leaves))) == ("Kafka topics a", "files in /in")
