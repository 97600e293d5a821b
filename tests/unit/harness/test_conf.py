"""Settings that Headrace owns cannot be changed, and everything else can."""

import json
import re

import pytest

from headrace_jobs.harness.conf import (
    PINNED_SESSION_CONF,
    check_session_conf,
    check_user_conf,
    driver_conf,
    spark_url,
)
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.runfile import parse_run_file
from tests.unit.harness.samples import GOOD


def conf_of(**spark_conf: str) -> dict[str, str]:
    run_file = parse_run_file(json.dumps({**GOOD, "sparkConf": spark_conf}))
    return driver_conf(run_file, jars=["file:///headrace.jar"], run_context="{}")


def test_the_driver_gets_its_run_and_what_is_pinned():
    conf = conf_of(**{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "8"})
    assert conf["spark.master"] == "local[2]"
    assert conf["spark.sql.shuffle.partitions"] == "8"
    assert conf["spark.hadoop.headrace.run.path"] == "s3a://bucket/shop/orders/j-1/run-3"
    assert conf["spark.hadoop.headrace.attempt"] == "2"
    assert conf["spark.hadoop.headrace.writer.id"] == "a-1"
    assert conf["spark.app.name"] == "shop/orders"
    assert {key: conf[key] for key in PINNED_SESSION_CONF} == {
        key: wanted for key, (wanted, _) in PINNED_SESSION_CONF.items()
    }


def test_a_store_that_does_not_answer_is_not_waited_for_all_day():
    assert conf_of()["spark.hadoop.fs.s3a.connection.timeout"] == "30s"
    own = {"spark.hadoop.fs.s3a.connection.timeout": "5s"}
    assert conf_of(**own)["spark.hadoop.fs.s3a.connection.timeout"] == "5s"


@pytest.mark.parametrize(
    ("option", "hidden"),
    [
        ("kafka.sasl.jaas.config", True),
        ("kafka.ssl.keystore.key", True),
        ("url", True),
        ("kafka.bootstrap.servers", False),
        ("subscribe", False),
    ],
)
def test_spark_hides_the_secrets_that_code_puts_into_options(option: str, hidden: bool):
    pattern = conf_of()["spark.sql.redaction.options.regex"]
    assert (re.search(pattern, option) is not None) is hidden
    own = {"spark.sql.redaction.options.regex": "mine"}
    assert conf_of(**own)["spark.sql.redaction.options.regex"] == "mine"


def test_our_jar_joins_the_users_jars():
    assert conf_of()["spark.jars"] == "file:///headrace.jar"
    assert conf_of(**{"spark.jars": "a.jar,b.jar"})["spark.jars"] == "a.jar,b.jar,file:///headrace.jar"


def test_executors_speak_as_loud_as_the_driver_and_as_loud_as_the_manifest_says():
    assert conf_of()["spark.executor.syncLogLevel.enabled"] == "true"
    assert conf_of()["spark.log.level"] == "WARN"
    assert conf_of(**{"spark.log.level": "INFO"})["spark.log.level"] == "INFO"


def test_defaults_give_way_to_the_manifest():
    assert conf_of()["spark.ui.showConsoleProgress"] == "false"
    assert conf_of(**{"spark.ui.showConsoleProgress": "true"})["spark.ui.showConsoleProgress"] == "true"


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.streaming.checkpointLocation",
        "spark.sql.streaming.checkpointFileManagerClass",
        "spark.sql.streaming.stateStore.providerClass",
        "spark.hadoop.headrace.attempt",
        "spark.remote",
    ],
)
def test_owned_settings_are_refused_with_the_key(key):
    with pytest.raises(Refused) as refusal:
        conf_of(**{key: "mine"})
    assert key in str(refusal.value)
    assert "Remove it" in str(refusal.value)


def test_an_owned_setting_with_our_own_value_does_no_harm():
    key, (wanted, _) = next(iter(PINNED_SESSION_CONF.items()))
    check_user_conf({key: wanted}, where="SparkSession.builder")
    assert conf_of(**{key: wanted})[key] == wanted


def test_a_session_that_was_changed_behind_our_back_is_refused_at_the_start_of_a_query():
    good = {key: wanted for key, (wanted, _) in PINNED_SESSION_CONF.items()}
    check_session_conf(good.get)
    for key in good:
        with pytest.raises(Refused) as refusal:
            check_session_conf((good | {key: "other"}).get)
        assert key in str(refusal.value)
    with pytest.raises(Refused):
        check_session_conf((good | {"spark.sql.streaming.checkpointLocation": "/tmp"}).get)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [("s3://b/x", "s3a://b/x"), ("s3a://b/x", "s3a://b/x"), ("file:///x", "file:///x")],
)
def test_spark_knows_s3_by_another_name(url, wanted):
    assert spark_url(url) == wanted
