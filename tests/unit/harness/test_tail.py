"""The end of the log: passed on as it comes, and kept."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from headrace_jobs.harness.tail import Tail, _write_all

HEAD = """
import os, subprocess, sys
from pathlib import Path
from headrace_jobs.harness.tail import keep_log
keeper = keep_log()
kept = Path(sys.argv[1])
"""


def run(body: str, tmp_path, **options) -> tuple[subprocess.CompletedProcess, bytes]:
    kept = tmp_path / "kept"
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(body), str(kept)],
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )
    return done, kept.read_bytes() if kept.exists() else b""


@pytest.mark.parametrize("piece", [1, 7, 1000, 65536])
def test_the_tail_is_bounded_and_begins_with_a_line(piece: int):
    text = b"".join(b"line %d\n" % number for number in range(5000))
    tail = Tail(limit=1000)
    for start in range(0, len(text), piece):
        tail.add(text[start : start + piece])
    content = tail.content()
    assert text.endswith(content)
    assert content.startswith(b"line ")
    assert 980 < len(content) <= 1000


def test_a_short_log_is_kept_whole():
    tail = Tail(limit=1000)
    tail.add(b"no newline")
    assert tail.content() == b"no newline"


def test_one_endless_line_is_kept_from_its_middle():
    tail = Tail(limit=100)
    tail.add(b"x" * 500)
    assert tail.content() == b"x" * 100


def test_everything_is_passed_on_and_the_end_is_kept_also_of_children(tmp_path):
    done, kept = run(
        """
        print("from python", flush=True)
        os.write(2, b"from below\\n")
        subprocess.run([sys.executable, "-c", "print('from a child')"])
        sys.stdout.write("not flushed\\n")
        kept.write_bytes(keeper.finish())
        print("after the end")
        """,
        tmp_path,
    )
    assert done.returncode == 0
    assert done.stdout == b"from python\nfrom a child\nnot flushed\nafter the end\n"
    assert done.stderr == b"from below\n"
    assert sorted(kept.splitlines()) == [b"from a child", b"from below", b"from python", b"not flushed"]


def test_a_long_log_is_passed_on_whole_and_kept_in_part(tmp_path):
    done, kept = run(
        """
        for number in range(200_000):
            print("line", number)
        kept.write_bytes(keeper.finish())
        """,
        tmp_path,
    )
    assert done.stdout.splitlines()[-1] == b"line 199999"
    assert len(done.stdout.splitlines()) == 200_000
    assert 250_000 < len(kept) <= 256 * 1024
    assert done.stdout.endswith(kept)


def test_a_pipe_that_does_not_block_loses_nothing():
    read, write = os.pipe()
    os.set_blocking(write, False)
    data = os.urandom(1_000_000)  # far more than a pipe holds

    def pass_on() -> None:
        _write_all(write, data)
        os.close(write)

    writer = threading.Thread(target=pass_on)
    writer.start()
    with os.fdopen(read, "rb") as reader:
        assert reader.read() == data
    writer.join()


def test_a_child_that_lives_on_does_not_hold_the_end(tmp_path):
    done, kept = run(
        """
        waiting = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        child = subprocess.Popen(waiting, stdin=subprocess.PIPE)
        print("told", flush=True)
        kept.write_bytes(keeper.finish())
        child.kill()
        child.wait()
        """,
        tmp_path,
    )
    assert done.returncode == 0
    assert kept == b"told\n"


def test_a_killed_driver_leaves_no_keeper_behind_and_its_last_line_is_seen(tmp_path):
    # communicate() returns when the last writer of the pipes is gone: the keeper, too.
    done, _ = run('print("last", flush=True); os.kill(os.getpid(), 9)', tmp_path)
    assert done.returncode == -9
    assert done.stdout == b"last\n"


def test_a_file_needs_no_keeper(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-c", HEAD + "sys.exit(0 if keeper is None else 1)", "x"],
            stdout=log,
            stderr=log,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
