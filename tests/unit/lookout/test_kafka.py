"""The small JVM that asks Kafka."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from headrace_jobs.harness.driver_jvm import JvmFailed
from headrace_jobs.harness.offsets import LookFailed
from headrace_jobs.lookout import kafka


def test_a_jvm_that_does_not_answer_is_ended_before_the_next_one_starts(monkeypatch):
    jvm = MagicMock()
    jvm.wait_for_gateway.side_effect = JvmFailed("the JVM did not answer within 120 s")
    monkeypatch.setattr(kafka, "start_driver_jvm", lambda **_: jvm)
    monkeypatch.setattr(kafka, "driver_conf", lambda *_, **__: {})
    monkeypatch.setattr(kafka, "find_java", lambda: SimpleNamespace(home="/java"))
    monkeypatch.setattr(kafka, "make_scratch", MagicMock())
    with pytest.raises(LookFailed, match="did not answer"):
        kafka.Kafka(MagicMock()).topics({})
    jvm.halt.assert_called_once()
