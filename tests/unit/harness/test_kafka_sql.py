"""Tables in SQL: a statement gets the options that it leaves open, and nothing else of it changes."""

import pytest

from headrace_jobs.harness.kafka_sql import with_kafka
from tests.unit.harness.test_kafka import a_kafka

CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
PLAIN = a_kafka(bootstrap_servers="k:9092", protocol="SSL", sasl=None, ca_file=None, client=None)
BOTH = "'kafka.bootstrap.servers' 'k:9092', 'kafka.security.protocol' 'SSL'"


@pytest.mark.parametrize(
    ("statement", "becomes"),
    [
        (
            "CREATE TABLE t USING kafka OPTIONS (subscribe 'clicks')",
            f"CREATE TABLE t USING kafka OPTIONS ({BOTH}, subscribe 'clicks')",
        ),
        ("create temp view v using `kafka`", f"create temp view v using `kafka` OPTIONS ({BOTH})"),
        ("CREATE TABLE t USING kafka OPTIONS ()", f"CREATE TABLE t USING kafka OPTIONS ({BOTH})"),
        (
            "CREATE TABLE t USING kafka COMMENT 'options (x)' OPTIONS ('Kafka.Security.Protocol' = 'SSL')",
            "CREATE TABLE t USING kafka COMMENT 'options (x)' OPTIONS ('kafka.bootstrap.servers' 'k:9092', "
            "'Kafka.Security.Protocol' = 'SSL')",
        ),
        (
            f"-- using delta\nCREATE /* as */ TABLE `using` USING {CLASS}",
            f"-- using delta\nCREATE /* as */ TABLE `using` USING {CLASS} OPTIONS ({BOTH})",
        ),
        (
            "CREATE TABLE t USING kafka OPTIONS (kafka.security.protocol = 'SSL', assign '{\"a\":[0,1]}')",
            "CREATE TABLE t USING kafka OPTIONS ('kafka.bootstrap.servers' 'k:9092', "
            "kafka.security.protocol = 'SSL', assign '{\"a\":[0,1]}')",
        ),
    ],
)
def test_what_is_left_open_is_added(statement: str, becomes: str):
    assert with_kafka(statement, PLAIN) == becomes


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'CREATE TABLE t USING kafka'",
        "CREATE TABLE t USING delta OPTIONS (x 'USING kafka')",
        "CREATE TABLE t AS SELECT * FROM a JOIN b USING (kafka)",
        "CREATE VIEW v AS SELECT * FROM a JOIN b USING (kafka)",
        "INSERT INTO t SELECT * FROM s",
        "CREATE TABLE t USING kafka OPTIONS (kafka.bootstrap.servers 'other:9092')",
        "CREATE TABLE t USING kafka OPTIONS (subscribe concat('a', 'b'))",
        "CREATE TABLE t USING kafka OPTIONS (subscribe 'a'",
        "CREATE TABLE t USING",
        "",
    ],
)
def test_everything_else_stays_as_it_is(statement: str):
    assert with_kafka(statement, PLAIN) == statement


def test_a_value_with_quotes_stays_one_value():
    made = with_kafka("CREATE TABLE t USING kafka", a_kafka())
    assert "'kafka.sasl.jaas.config' 'org.apache" in made
    assert 'usernameFile="/k/sasl/username"' in made
    assert "'kafka.ssl.keystore.key' '${headracefiles:/k/client:tls.key}'" in made
    odd = a_kafka(bootstrap_servers=None, protocol="SSL", sasl=None, client=None, ca_file="/a'b\\c")
    assert r"'/a\'b\\c'" in with_kafka("CREATE TABLE t USING kafka", odd)
