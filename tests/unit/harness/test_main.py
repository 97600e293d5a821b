"""What goes wrong before there is a driver is said, and said to the end."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.harness.samples import GOOD


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def test_a_driver_that_cannot_begin_says_why_before_its_container_ends(tmp_path: Path, taken_port: int):
    agent = {"host": "127.0.0.1", "port": taken_port, "tokenFile": str(tmp_path / "token")}
    (tmp_path / "token").write_text("a token")
    (tmp_path / "run.json").write_text(json.dumps({**GOOD, "agent": agent}))
    command = [sys.executable, "-m", "headrace_jobs.harness", "--run-file", str(tmp_path / "run.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 70
    assert "the driver could not begin" in done.stderr
    assert "Address already in use" in done.stderr


PRINTS = """
from headrace_jobs.harness.main import print_whole_lines
print_whole_lines()
print("one", "line", 1)
print("no end yet", end="")
print(", and its end")
"""


def test_a_printed_line_is_written_at_once_so_that_no_other_comes_in_between():
    """In a pipe of packets, what was written as one is read as one."""
    read, write = os.pipe2(os.O_DIRECT)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    try:
        subprocess.run([sys.executable, "-c", PRINTS], stdout=write, env=environment, check=True, timeout=60)
        assert os.read(read, 4096) == b"one line 1\n"
        assert os.read(read, 4096) == b"no end yet, and its end\n"
    finally:
        os.close(read)
        os.close(write)
