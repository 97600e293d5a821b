"""The JVM of the driver: how it is told its settings, and what is said when it is gone."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from headrace_jobs.harness.archive import archive_options, archive_path
from headrace_jobs.harness.driver_jvm import (
    DriverJvm,
    JvmFailed,
    java_properties,
    process_create_time,
    submit_command,
)


def read_properties(text: str) -> dict[str, str]:
    """Java's reader, as far as we use it."""
    unescaped = {"n": "\n", "r": "\r", "t": "\t"}
    values = {}
    for line in text.splitlines():
        parts, current, escaped, split = [], "", False, False
        for letter in line:
            if escaped:
                current += unescaped.get(letter, letter)
                escaped = False
            elif letter == "\\":
                escaped = True
            elif letter == "=" and not split:
                parts.append(current)
                current, split = "", True
            elif not (letter == " " and split and not current):
                current += letter
        values[parts[0]] = current
    return values


@pytest.mark.parametrize(
    "value",
    ["plain", "a=b:c", " leading", "C:\\path\\n", "two\nlines", "tab\there", "ümlaut ☃", "", "#no comment"],
)
def test_settings_survive_the_way_through_the_file(value):
    conf = {"spark.a": value, "spark.odd key:x": "y"}
    assert read_properties(java_properties(conf)) == conf


def test_no_setting_is_on_the_command_line(tmp_path):
    command = submit_command(tmp_path, tmp_path / "driver.conf")
    assert not any("spark." in part.removeprefix(str(tmp_path)) for part in command if "=" in part)
    assert str(tmp_path / "driver.conf") in command


def a_jvm(tmp_path, *command: str) -> DriverJvm:
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    return DriverJvm(process, tmp_path / "gateway", tmp_path / "driver.conf")


def test_a_jvm_that_ends_while_it_starts_is_told_with_its_exit_code(tmp_path):
    jvm = a_jvm(tmp_path, sys.executable, "-c", "raise SystemExit(3)")
    with pytest.raises(JvmFailed) as failed:
        jvm.wait_for_gateway(30)
    assert "ended with exit code 3 while it started" in str(failed.value)


def test_a_jvm_that_never_answers_is_given_up(tmp_path):
    jvm = a_jvm(tmp_path, sys.executable, "-c", "import sys; sys.stdin.read()")
    with pytest.raises(JvmFailed):
        jvm.wait_for_gateway(0.1)
    assert jvm.how_it_ended() is None
    jvm.halt()
    assert jvm.how_it_ended() == "was killed (out of memory?)"


def test_a_jvm_whose_heap_was_full_says_so_to_whoever_waits_a_moment(tmp_path):
    jvm = a_jvm(tmp_path, sys.executable, "-c", "raise SystemExit(52)")
    assert jvm.how_it_ended(within_seconds=30) == "ran out of memory"
    assert jvm.ran_out_of_memory


def test_the_gateways_address_is_read_and_the_settings_are_removed(tmp_path):
    (tmp_path / "driver.conf").write_text("spark.secret=x")
    (tmp_path / "gateway").write_bytes(b"\x00\x00\x9c\x40\x00\x00\x00\x03abc")
    jvm = a_jvm(tmp_path, sys.executable, "-c", "import sys; sys.stdin.read()")
    gateway = jvm.wait_for_gateway(30)
    jvm.close(30)
    assert (gateway.port, gateway.secret) == (40000, "abc")
    assert list(tmp_path.iterdir()) == []


def test_a_process_is_known_by_its_pid_and_its_begin():
    told = process_create_time(os.getpid())
    assert told == pytest.approx(psutil.Process().create_time(), abs=1.0)
    assert told <= time.time()


def test_an_archive_is_used_only_when_it_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java, spark = tmp_path / "java", tmp_path / "spark"
    (spark / "jars").mkdir(parents=True)
    java.mkdir()
    (java / "release").write_text('JAVA_VERSION="17.0.15"')
    environment = {"JAVA_HOME": str(java), "SPARK_SUBMIT_OPTS": "-Dmine=1"}
    assert archive_options(environment, spark) == {}
    archive = archive_path(java, spark)
    archive.parent.mkdir(parents=True)
    archive.write_text("")
    options = archive_options(environment, spark)["SPARK_SUBMIT_OPTS"]
    assert options.startswith("-Dmine=1 ")
    assert options.endswith(f"-XX:SharedArchiveFile={archive}")
    base = archive.with_suffix(".base.jsa")
    base.write_text("")
    assert archive_options(environment, spark)["SPARK_SUBMIT_OPTS"].endswith(f"={base}:{archive}")
    assert archive_options({}, spark) == {}
    (java / "release").write_text('JAVA_VERSION="21.0.1"')
    assert archive_path(java, spark) != archive
