"""The JVM of the driver, started by us instead of by pyspark.

Three reasons: it starts before pyspark is even imported (the two overlap), its settings go through a file
that only this user can read instead of the command line (they may hold credentials), and we hold the
process itself, so that it can be ended at once.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.02
# Spark's own code for a JVM whose heap was full; in a container the kernel may be quicker.
_OUT_OF_MEMORY_CODE = 52


class JvmFailed(Exception):
    """The JVM did not start, or is gone; the message says what to look at."""


@dataclass(frozen=True)
class Gateway:
    """Where py4j finds the JVM."""

    port: int
    secret: str


class DriverJvm:
    def __init__(self, process: subprocess.Popen[bytes], connection_file: Path, conf_file: Path) -> None:
        self._process = process
        self._connection_file = connection_file
        self._conf_file = conf_file

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for_gateway(self, timeout_seconds: float) -> Gateway:
        deadline = time.monotonic() + timeout_seconds
        while not self._connection_file.exists():
            if self._process.poll() is not None:
                raise JvmFailed(f"the JVM {_exit_in_words(self._process.returncode)} while it started")
            if time.monotonic() > deadline:
                raise JvmFailed(f"the JVM did not answer within {timeout_seconds:.0f} s")
            time.sleep(_POLL_SECONDS)
        gateway = _read_gateway(self._connection_file.read_bytes())
        self._connection_file.unlink()
        self._conf_file.unlink()  # read by now, and nobody else needs to see it
        return gateway

    def wait(self) -> str:
        """Blocks until the JVM is gone; says how it went."""
        return _exit_in_words(self._process.wait())

    @property
    def ran_out_of_memory(self) -> bool:
        """As far as the JVM itself could tell."""
        return self._process.poll() == _OUT_OF_MEMORY_CODE

    def how_it_ended(self, within_seconds: float = 0.0) -> str | None:
        """None while it lives, also after this time."""
        deadline = time.monotonic() + within_seconds
        while (code := self._process.poll()) is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return None if code is None else _exit_in_words(code)

    def print_stacks(self, grace_seconds: float = 1.0) -> None:
        """All threads to the log. By signal, because a JVM that is stuck may not answer calls."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGQUIT)
            threading.Event().wait(grace_seconds)

    def close(self, timeout_seconds: float) -> None:
        """Lets the JVM end by itself, with all it wants to do at its end."""
        self._process.communicate(timeout=timeout_seconds)

    def halt(self) -> None:
        """Ends the JVM at once: no shutdown hook may stop a query in the middle of a batch."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


def start_driver_jvm(
    *,
    spark_home: Path,
    scratch: Path,
    conf: Mapping[str, str],
    environment: Mapping[str, str],
    inherit: tuple[int, ...] = (),
) -> DriverJvm:
    """`scratch` is a directory that only this user can read; `inherit`: descriptors the JVM holds as well."""
    conf_file = scratch / "driver.conf"
    connection_file = scratch / "gateway"
    conf_file.touch(mode=0o600)
    conf_file.write_text(java_properties(conf), encoding="utf-8")
    process = subprocess.Popen(
        submit_command(spark_home, conf_file),
        env={
            **environment,
            "SPARK_HOME": str(spark_home),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file),
        },
        pass_fds=inherit,
        # Spark's gateway server ends when this pipe breaks: a killed harness leaves no JVM behind.
        stdin=subprocess.PIPE,
        # A session of its own: Ctrl-C and signals to the group are for the harness, which drains first.
        start_new_session=True,
    )
    return DriverJvm(process, connection_file, conf_file)


def spark_home() -> Path:
    """SPARK_HOME, or the installed pyspark; it is not imported for that."""
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"])
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JvmFailed("this Python has no pyspark. Install it: pip install 'headrace[jobs]'")
    return Path(spec.origin).parent


def submit_command(spark_home: Path, conf_file: Path) -> Sequence[str]:
    return (
        str(spark_home / "bin" / "spark-submit"),
        "--properties-file",
        str(conf_file),
        # Without it a properties file replaces the image's own spark-defaults.conf.
        "--load-spark-defaults",
        "pyspark-shell",
    )


def java_properties(values: Mapping[str, str]) -> str:
    """Java's properties format, with everything escaped that its reader would swallow."""
    return "".join(f"{_escape(key, key=True)}={_escape(value)}\n" for key, value in values.items())


def _escape(text: str, *, key: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    if key:
        return escaped.replace(" ", "\\ ").replace(":", "\\:").replace("=", "\\=")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _read_gateway(content: bytes) -> Gateway:
    """Spark's own format: the port as an int, then the secret with its length before it."""
    (port,) = struct.unpack_from(">i", content)
    (length,) = struct.unpack_from(">i", content, 4)
    return Gateway(port=port, secret=content[8 : 8 + length].decode())


def _exit_in_words(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed (out of memory?)"
    if code == _OUT_OF_MEMORY_CODE:
        return "ran out of memory"
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def process_create_time(pid: int) -> float:
    """When a process began, in seconds since the epoch, so that a pid that was reused is not mistaken for it.

    Linux tells it exactly; elsewhere the current time stands in, right for a process that has just begun.
    """
    try:
        # The second field is a name in brackets and may hold spaces.
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        kernel = Path("/proc/stat").read_text()
    except OSError:
        return time.time()
    boot = next(int(line.split()[1]) for line in kernel.splitlines() if line.startswith("btime"))
    return boot + int(after_name[19]) / os.sysconf("SC_CLK_TCK")
