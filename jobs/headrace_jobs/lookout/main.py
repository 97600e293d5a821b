"""The command: looks until there is something to say, and says it with its end."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.runfile import RunFile, RunFileInvalid, read_run_file
from headrace_jobs.lookout.kafka import Kafka
from headrace_jobs.lookout.sources import Sources
from headrace_jobs.lookout.watch import PATIENCE_SECONDS, Seen, Watch

log = logging.getLogger("headrace")

_REFUSED = 64


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m headrace_jobs.lookout", description=__doc__)
    parser.add_argument("--run-file", type=Path, required=True, help="of the attempt that ended")
    parser.add_argument("--every", type=float, required=True, help="seconds from one look to the next")
    parser.add_argument("--result", type=Path, required=True, help="file for the last words, as JSON")
    arguments = parser.parse_args(argv)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s headrace %(levelname)s: %(message)s",
    )
    try:
        run_file = read_run_file(arguments.run_file)
    except RunFileInvalid as problem:
        log.error("%s: %s", arguments.run_file, problem)  # noqa: TRY400 - the sentence is enough
        return _REFUSED
    words = watch(run_file, every_seconds=arguments.every, result=arguments.result)
    log.info("%s: %s", words["reason"], words["message"])
    arguments.result.write_text(json.dumps(words), encoding="utf-8")
    return 0


def watch(run_file: RunFile, *, every_seconds: float, result: Path) -> dict[str, Any]:
    kafka = Kafka(run_file)
    store = store_of(run_file)
    sources = Sources(store, run_file.run, kafka.topics)
    alive = _Alarm(every_seconds + 2 * PATIENCE_SECONDS, result)

    def look() -> Seen:
        seen = sources.look()
        alive.beat()
        return seen

    alive.start()
    try:
        return Watch(look=look, every_seconds=every_seconds, clock=time.monotonic, sleep=time.sleep).run()
    finally:
        kafka.close()  # which may hang as well
        alive.stop()


class _Alarm:
    """A look that never ends must not keep a job asleep: whoever hangs ends, and says that he is blind."""

    def __init__(self, seconds: float, result: Path) -> None:
        self._seconds, self._result = seconds, result
        self._beat = threading.Event()
        self._over = False

    def start(self) -> None:
        threading.Thread(target=self._wait, name="headrace-alarm", daemon=True).start()

    def beat(self) -> None:
        self._beat.set()

    def stop(self) -> None:
        self._over = True
        self._beat.set()

    def _wait(self) -> None:
        while self._beat.wait(self._seconds):
            self._beat.clear()
            if self._over:
                return
        message = f"nobody can tell whether there is work: no look has ended for {self._seconds:.0f} s"
        self._result.write_text(json.dumps({"reason": "Blind", "message": message}), encoding="utf-8")
        os._exit(0)
