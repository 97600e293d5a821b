import os
import subprocess
import sys

import psutil

from headrace.local.layout import Layout, read_json, write_json
from headrace.local.processes import DriverProcess, ProcessIdentity, wait_for_orphans


def a_sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)


def test_a_process_is_its_pid_and_its_start():
    process = a_sleeper()
    try:
        started = psutil.Process(process.pid).create_time()
        assert ProcessIdentity(process.pid, started).alive()
        assert not ProcessIdentity(process.pid, started - 100).alive(), "a reused pid is another process"
    finally:
        process.kill()
        process.wait()
    assert not ProcessIdentity(process.pid, started).alive()


def test_a_zombie_writes_no_more():
    process = a_sleeper()
    identity = ProcessIdentity(process.pid, psutil.Process(process.pid).create_time())
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and not collected
    assert not identity.alive()
    process.wait()


def test_an_orphan_is_waited_for_and_then_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.local.processes.ORPHAN_SECONDS", 0.2)
    layout = Layout(tmp_path)
    process = a_sleeper()
    created = psutil.Process(process.pid).create_time()
    files = layout.attempt(1, 1)
    write_json(files.process, {"uid": "u", "pid": process.pid, "createTime": created, "jvmPid": None})
    assert DriverProcess.read(files.process).alive()
    wait_for_orphans(layout)
    assert process.wait(5) != 0


def test_json_files_are_replaced_whole(tmp_path):
    path = tmp_path / "deep" / "file.json"
    assert read_json(path) is None
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert read_json(path) == {"a": 2}
    assert [p.name for p in path.parent.iterdir()] == ["file.json"]
