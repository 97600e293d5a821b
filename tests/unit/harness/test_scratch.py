"""The driver's directory: gone with the driver, or swept by the next one."""

import os
import subprocess
import sys

from headrace_jobs.harness.scratch import make_scratch, sweep


def test_a_directory_in_use_is_left_alone_and_a_dead_one_is_swept(tmp_path):
    alive = make_scratch(tmp_path)
    (alive.path / "state").mkdir()
    killed = make_scratch(tmp_path)
    (killed.path / "state").mkdir()
    (tmp_path / "headrace-driver-just-being-made").mkdir()
    os.close(killed.lock)  # what the kernel does for a process that is killed
    assert alive.path.stat().st_mode & 0o077 == 0
    sweep(tmp_path)
    assert alive.path.exists()
    assert not killed.path.exists()
    assert (tmp_path / "headrace-driver-just-being-made").exists()
    alive.remove()
    assert not alive.path.exists()


def test_a_jvm_that_outlives_the_harness_keeps_the_directory(tmp_path):
    scratch = make_scratch(tmp_path)
    jvm = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, pass_fds=[scratch.lock]
    )
    os.close(scratch.lock)
    sweep(tmp_path)
    assert scratch.path.exists()
    jvm.communicate()
    sweep(tmp_path)
    assert not scratch.path.exists()
