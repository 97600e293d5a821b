"""The fixture itself: runs a job's own, unmodified code on the rows of a test."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headrace_jobs import run as run_context
from headrace_jobs.harness.application import find_program, import_path, run_program, user_code
from headrace_jobs.harness.conf import PLATFORM_CONF, check_user_conf
from headrace_jobs.harness.patches import Patches
from headrace_jobs.harness.session import guard_session
from headrace_jobs.testing.inputs import as_stream, check_all_used
from headrace_jobs.testing.manifest import ManifestProblem, TestedJob, read_manifest
from headrace_jobs.testing.player import Player
from headrace_jobs.testing.readers import take_over_static_readers, take_over_stream_readers
from headrace_jobs.testing.results import JobResult
from headrace_jobs.testing.spark import TestSpark
from headrace_jobs.testing.writers import take_over_writers


class JobTest:
    """The `headrace` fixture."""

    def __init__(self, spark: TestSpark, *, scratch: Path, look_in: Sequence[Path]) -> None:
        self._spark = spark
        self._scratch = scratch
        self._look_in = look_in
        self._runs = 0

    def run(
        self,
        manifest: str | Path,
        inputs: Mapping[str, Any],
        *,
        tables: Mapping[str, list[dict[str, Any]]] | None = None,
        args: Sequence[str] | None = None,
        call_foreach_batch: bool = False,
    ) -> JobResult:
        """Runs the job of a manifest (or a PySpark file) and gives what its queries gave.

        `inputs`: rows for each stream, by Kafka topic, path, last part of the path, table or format. A list
        of lists of rows is fed batch by batch; a plain list is one batch.
        `tables`: rows for what the job reads without streaming, by path or table.
        `args`: instead of the manifest's.
        `call_foreach_batch`: also call the job's own foreachBatch functions (they may write to the outside).
        """
        job = read_manifest(self._find(manifest), tuple(args) if args is not None else None)
        check_user_conf(job.spark_conf, where="spec.sparkConf")
        streams = {key: as_stream(key, given) for key, given in inputs.items()}
        self._runs += 1
        scratch = self._scratch / f"headrace-{self._runs}"
        session = self._session_for(job)
        with _interpreter_of(job, session):
            program = find_program(job.application)
            player = Player(session, streams, scratch, user_code(job.application, program))
            patches = Patches()
            try:
                self._take_over(patches, session)
                take_over_stream_readers(patches, session, player)
                take_over_static_readers(patches, session, tables or {})
                take_over_writers(patches, player, scratch, call_foreach_batch=call_foreach_batch)
                _run_to_the_end(program, player)
            finally:
                patches.undo()
                player.stop()
        check_all_used(streams, player.used_keys, player.sources)
        return JobResult(player.results())

    def _find(self, manifest: str | Path) -> Path:
        candidates = [directory / manifest for directory in self._look_in]
        for path in candidates:
            if path.is_file():
                return path
        raise ManifestProblem(f"{manifest} is not in {' or '.join(str(path.parent) for path in candidates)}")

    def _session_for(self, job: TestedJob) -> SparkSession:
        session = self._spark.new_session()
        for key, value in job.spark_conf.items():
            # Settings of the JVM are fixed by now, and a test's partitions are ours to choose.
            if (
                key not in PLATFORM_CONF
                and key != "spark.sql.shuffle.partitions"
                and session.conf.isModifiable(key)
            ):
                session.conf.set(key, value)
        return session

    @staticmethod
    def _take_over(patches: Patches, session: SparkSession) -> None:
        guard_session(patches)
        for name in ("_instantiatedSession", "_activeSession"):
            patches.replace(SparkSession, name, lambda _original: session)


def _run_to_the_end(program: Any, player: Player) -> None:
    try:
        run_program(program)
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise
    player.play()


@contextlib.contextmanager
def _interpreter_of(job: TestedJob, session: SparkSession) -> Iterator[None]:
    """The interpreter as the job would find it, and afterwards as pytest left it."""
    argv, path, main = sys.argv, list(sys.path), sys.modules["__main__"]
    known = set(sys.modules)
    workers = session.sparkContext.environment
    encoded = run_context.encode(
        job=run_context.JobRef(job.namespace, job.name, "test"),
        number=1,
        attempt=1,
        epoch=1,
        rehearsing=False,
    )
    first = (
        import_path(job.application) if job.application.file else [str(job.home), *job.application.py_files]
    )
    sys.path[0:0] = first
    os.environ[run_context.VARIABLE] = encoded
    workers.update({"PYTHONPATH": os.pathsep.join(first), run_context.VARIABLE: encoded})
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        sys.modules["__main__"] = main
        del os.environ[run_context.VARIABLE], workers["PYTHONPATH"], workers[run_context.VARIABLE]
        for name in set(sys.modules) - known:
            # The next job may have a module of the same name, and must not get this one's.
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(job.home) + os.sep):
                del sys.modules[name]
