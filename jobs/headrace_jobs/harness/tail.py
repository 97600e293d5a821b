"""The end of the log, kept for whoever asks after the pod is gone.

What the driver, its JVM and their workers write goes through a small process of its own, which passes it on
at once and remembers the end. It is a process because a thread would stand still while the user's code holds
the interpreter, and with it everybody who writes. Only where the log is a pipe, as in a container: a file is
kept by whoever made it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterable

TAIL_BYTES = 256 * 1024
_READ_BYTES = 65536
# Somebody who goes on writing after the end is not waited for.
_DRAIN_SECONDS = 1.0
_FINISH_SECONDS = 2.0


class Tail:
    """The newest bytes of a log, from the beginning of a line."""

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        self._kept += data
        # Cut now and then, not with every line.
        if len(self._kept) > 2 * self._limit:
            self._cut = True
            del self._kept[: -self._limit]

    def content(self) -> bytes:
        if not self._cut and len(self._kept) <= self._limit:
            return bytes(self._kept)
        end = bytes(self._kept[-self._limit :])
        _, newline, lines = end.partition(b"\n")
        return lines if newline else end


class LogKeeper:
    """The harness's hold on the process that keeps the tail."""

    def __init__(self, control: socket.socket, originals: dict[int, int]) -> None:
        self._control = control
        self._originals = originals

    def finish(self) -> bytes:
        """Everything written so far has been passed on afterwards; the end of it. To be called once."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        for number, original in self._originals.items():
            os.dup2(original, number)
        self._control.settimeout(_FINISH_SECONDS)
        content = bytearray()
        try:
            self._control.sendall(b".")
            while data := self._control.recv(_READ_BYTES):
                content += data
        except OSError:
            return b""  # it is gone, or its reader does not read
        return bytes(content)


def keep_log() -> LogKeeper | None:
    """To be called before there is a thread or a JVM. None where the log is a file."""
    numbers = [number for number in (1, 2) if _is_pipe(number)]
    if not numbers:
        return None
    ours, theirs = socket.socketpair()
    pipes = {number: os.pipe() for number in numbers}
    originals = {number: os.dup(number) for number in numbers}
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if os.fork() == 0:
        _be_the_keeper(theirs, pipes, originals, close=(ours.fileno(), 0, *numbers))
    theirs.close()
    for number, (read, write) in pipes.items():
        os.dup2(write, number)
        os.close(read)
        os.close(write)
    return LogKeeper(ours, originals)


def _is_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _be_the_keeper(
    control: socket.socket,
    pipes: dict[int, tuple[int, int]],
    originals: dict[int, int],
    *,
    close: Iterable[int],
) -> None:
    """Never returns. Ends when it is told to, or when nobody is left who could write."""
    try:
        # Signals are for the harness; the log of what they do is still to be passed on.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for number in (*close, *(write for _, write in pipes.values())):
            with contextlib.suppress(OSError):
                os.close(number)
        _pass_on(control, {read: originals[number] for number, (read, _) in pipes.items()})
    finally:
        os._exit(0)


def _pass_on(control: socket.socket, outputs: dict[int, int]) -> None:
    tail, told = Tail(), False
    watched = select.poll()
    for source in (*outputs, control.fileno()):
        watched.register(source, select.POLLIN)
    open_sources, deadline = set(outputs), 0.0
    while open_sources or not told:
        # Told to end, it reads what is in the pipes, and no more.
        ready = [number for number, _ in watched.poll(0 if told else None)]
        if told and (not ready or time.monotonic() > deadline):
            break
        if control.fileno() in ready:
            watched.unregister(control.fileno())
            control.recv(1)  # unread, it would make the answer a connection that was reset
            told, deadline = True, time.monotonic() + _DRAIN_SECONDS
        for source in open_sources & set(ready):
            data = os.read(source, _READ_BYTES)
            if not data:
                watched.unregister(source)
                open_sources = open_sources - {source}
                continue
            tail.add(data)
            _write_all(outputs[source], data)
    control.sendall(tail.content())


def _write_all(output: int, data: bytes) -> None:
    # A reader that is gone does not end the job, nor the keeping.
    with contextlib.suppress(OSError):
        while data:
            try:
                data = data[os.write(output, data) :]
            except BlockingIOError:  # somebody made the pipe non-blocking, for himself and us
                select.select([], [output], [])
