"""Puts the driver together: a socket first, then the JVM, then the session, the claim, and the user's code.

What the JVM does not wait for is imported after its start: the two take about the same time.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from headrace_jobs.harness.application import find_program, import_path, run_program, user_code
from headrace_jobs.harness.archive import archive_options
from headrace_jobs.harness.asks import listen_for_signals, take_signals, watch_parent
from headrace_jobs.harness.assignment import Assignment
from headrace_jobs.harness.conductor import Conductor, Parts
from headrace_jobs.harness.conf import driver_conf, has_event_log
from headrace_jobs.harness.connectors import NoConnector, s3_jars
from headrace_jobs.harness.driver_jvm import (
    DriverJvm,
    JvmFailed,
    process_create_time,
    spark_home,
    start_driver_jvm,
)
from headrace_jobs.harness.endings import (
    ApplicationEnded,
    BatchStuck,
    CannotStart,
    DrainRequested,
    JvmEnded,
    QueryEnd,
    QueryEnded,
)
from headrace_jobs.harness.event_log import prepare_event_log
from headrace_jobs.harness.kafka import problems
from headrace_jobs.harness.listening import listen
from headrace_jobs.harness.orders import NotInStandby, parse_order
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.harness.scratch import make_scratch
from headrace_jobs.harness.tail import LogKeeper
from headrace_jobs.harness.termination import write_json
from headrace_jobs.harness.view import QueryView, iso, to_status
from headrace_jobs.harness.watchdog import stuck_queries
from headrace_jobs.jvm import (
    JarNotBuilt,
    JavaMissing,
    UnsupportedSpark,
    find_java,
    jar_path,
    java_environment,
)

if TYPE_CHECKING:  # pyspark is imported while the JVM starts, not before
    from headrace_jobs.harness.activation import Activation
    from headrace_jobs.harness.observer import Observer
    from headrace_jobs.harness.rehearsal import Rehearsal
    from headrace_jobs.harness.repartition import Repartition
    from headrace_jobs.harness.scaling_ring import ScalingRing
    from headrace_jobs.harness.spark_side import Hooks

log = logging.getLogger("headrace")

_GATEWAY_SECONDS = 120.0
_CAUSE_SECONDS = 5.0


class Driver:
    """One attempt, from its run file to its end."""

    def __init__(self, run_file: RunFile, token: str, log_keeper: LogKeeper | None = None) -> None:
        self._assignment = Assignment(run_file)
        self._started_at = iso(time.time())
        self._parts = Parts(log_keeper=log_keeper, event_log=has_event_log(run_file))
        self._conductor = Conductor(self._assignment, parts=self._parts)
        self._token = token
        self._listening = listen(run_file.agent.host, run_file.agent.port)
        self._observer: Observer | None = None
        self._activation: Activation | None = None
        self._repartition: Repartition | None = None
        self._ring: ScalingRing | None = None
        self._running = False
        self._spark_version: str | None = None
        self._ui_url: str | None = None

    @property
    def _run_file(self) -> RunFile:
        return self._assignment.run_file

    def run(self) -> NoReturn:
        """Ends with the process, by the conductor."""
        threading.Thread(target=self._conductor.run, name="headrace-conductor").start()
        try:
            self._start_listening()
            jvm = self._start_jvm()
            self._serve()
            self._run_application(jvm)
        except BaseException as error:
            if not isinstance(error, SystemExit | CannotStart):
                log.exception("the application ended with an exception")
            self._let_its_query_tell_first(error)
            self._conductor.tell(ApplicationEnded(error))
        else:
            self._conductor.tell(ApplicationEnded())
            self._say_what_goes_on()
        while True:
            threading.Event().wait()

    def _start_listening(self) -> None:
        listen_for_signals(self._conductor, self._run_file.drain_timeout_seconds)
        if self._run_file.watch_parent:
            watch_parent(self._conductor, self._run_file.drain_timeout_seconds)
        self._write_process_file(None)

    def _start_jvm(self) -> DriverJvm:
        if self._parts.event_log:
            prepare_event_log(self._run_file)
        if self._run_file.kafka is not None and (wrong := list(problems(self._run_file.kafka))):
            raise CannotStart("; ".join(wrong))
        self._parts.scratch = scratch = make_scratch()
        conf = self._conf()
        path = import_path(self._run_file.application)
        # Python has put the current directory first, for `-m`; the application's own place comes first now.
        sys.path[: int(sys.path[0] in ("", str(Path.cwd())))] = path
        try:
            jvm = start_driver_jvm(
                spark_home=spark_home(),
                scratch=scratch.path,
                conf=conf,
                environment=self._jvm_environment(path, spark_home(), scratch.path),
                inherit=(scratch.lock,),
            )
        except JvmFailed as error:
            raise CannotStart(str(error)) from None
        self._parts.jvm = jvm
        self._write_process_file(jvm.pid)
        threading.Thread(
            target=lambda: self._conductor.tell(JvmEnded(jvm.wait(), jvm.ran_out_of_memory)),
            name="headrace-jvm",
            daemon=True,
        ).start()
        return jvm

    def _jvm_environment(self, path: list[str], spark: Path, scratch: Path) -> dict[str, str]:
        environment = os.environ | _java_environment()
        inherited = [entry for entry in [environment.get("PYTHONPATH")] if entry]
        environment["PYTHONPATH"] = os.pathsep.join([*path, *inherited])
        if self._run_file.spark_conf.get("spark.master", "").startswith("local"):
            # Nobody else needs the ports of a driver without executors.
            environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if "spark.local.dir" not in self._run_file.spark_conf:
            # A JVM that is ended at once cleans nothing up; what lies in our directory goes with it.
            environment.setdefault("SPARK_LOCAL_DIRS", str(scratch))
        return environment | archive_options(environment, spark)

    def _conf(self) -> dict[str, str]:
        run_file = self._run_file
        self._assignment.tell_the_driver()
        # Workers must run the driver's Python, not the first one on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            jars = [jar_path(), *s3_jars(run_file.store, spark_home() / "jars")]
        except (JarNotBuilt, NoConnector) as error:
            raise CannotStart(str(error)) from None
        return driver_conf(
            run_file, jars=[jar.as_uri() for jar in jars], run_context=self._assignment.context()
        )

    def _serve(self) -> None:
        from headrace_jobs.harness.agent import Agent, Served  # noqa: PLC0415 - overlaps with the JVM's start
        from headrace_jobs.harness.scaling_ring import ScalingRing  # noqa: PLC0415

        self._ring = ring = ScalingRing(self._run_file)
        ring.start()
        served = Served(
            status=self._status,
            drain=self._drain,
            metrics=self._metrics,
            scaling=ring.content,
            keep_scaling=ring.keep,
            activate=self._activate,
        )
        Agent(self._listening, token=self._token, uid=self._run_file.uid, served=served).start()

    def _run_application(self, jvm: DriverJvm) -> None:
        # Overlaps with the JVM's start.
        from headrace_jobs.harness.beginnings import SeedLookup  # noqa: PLC0415
        from headrace_jobs.harness.spark_side import take_over_spark  # noqa: PLC0415

        run_file = self._run_file
        seed = SeedLookup(run_file)
        program = find_program(run_file.application)
        self._parts.own = own = user_code(run_file.application, program)
        try:
            gateway = jvm.wait_for_gateway(_GATEWAY_SECONDS)
        except JvmFailed as error:
            raise CannotStart(f"{error}. {_java_advice()}") from None
        try:
            spark = take_over_spark(
                self._assignment,
                gateway,
                own=own,
                seed=seed,
                hooks=self._hooks(),
            )
        except UnsupportedSpark as error:
            raise CannotStart(str(error)) from None
        take_signals()
        self._parts.registry, self._parts.control = spark.registry, spark.control
        self._parts.stop_spark = spark.stop_spark
        self._observer = spark.observer
        self._spark_version, self._ui_url = spark.session.version, spark.session.sparkContext.uiWebUrl
        threading.Thread(target=self._watch_batches, args=(spark.observer,), daemon=True).start()
        self._repartition = spark.repartition
        if spark.rehearsal is not None:
            self._rehearse(spark.rehearsal)
        elif spark.repartition is not None:
            spark.repartition.run()
        self._running = True
        log.info("Spark %s is ready, %s begins", self._spark_version, run_file.application.label)
        run_program(program)

    def _hooks(self) -> Hooks:
        from headrace_jobs.harness.spark_side import Hooks  # noqa: PLC0415 - as above

        return Hooks(
            on_query_end=self._query_ended,
            tell=self._conductor.tell,
            application_finished=lambda: self._conductor.application_finished,
        )

    def _rehearse(self, rehearsal: Rehearsal) -> None:
        from headrace_jobs.harness.activation import Activation  # noqa: PLC0415 - only a candidate needs it

        self._parts.rehearsal = rehearsal
        self._activation = Activation(rehearsal, self._conductor.tell)
        rehearsal.begin()

    def _let_its_query_tell_first(self, error: BaseException) -> None:
        """A failed query is the cause, what it makes the script do is not, although it may be quicker."""
        registry = self._parts.registry
        if registry is not None and type(error).__name__ == "StreamingQueryException":
            registry.wait_for_failure(_CAUSE_SECONDS)

    def _query_ended(self, name: str, end: QueryEnd) -> None:
        """Where the JVM is going, that is the cause, and the end of its queries is not."""
        jvm = self._parts.jvm
        if (end.jvm_lost or end.spark_stopped) and jvm is not None:
            how = jvm.how_it_ended(within_seconds=_CAUSE_SECONDS)
            if how is not None:
                self._conductor.tell(JvmEnded(how, jvm.ran_out_of_memory))
                return
        if not end.jvm_lost:
            self._conductor.tell(QueryEnded(name, end))

    def _watch_batches(self, observer: Observer) -> None:
        limit = self._run_file.watchdog.batch_timeout_seconds
        while True:
            time.sleep(min(5.0, limit / 4))
            stuck = stuck_queries(
                observer.views(),
                now=time.monotonic(),
                last_look=observer.last_look,
                timeout_seconds=limit,
            )
            observer.mark_stuck(frozenset(found.query for found in stuck))
            if stuck and self._run_file.watchdog.action == "Restart":
                self._conductor.tell(BatchStuck(stuck[0].query, stuck[0].sentence))
                return

    def _say_what_goes_on(self) -> None:
        registry = self._parts.registry
        waiting = ", ".join(query.query_name for query in registry.active()) if registry else ""
        if waiting:
            log.info("the application's script has ended; its queries go on: %s", waiting)

    def _status(self) -> dict[str, Any]:
        run_file = self._run_file
        offset = time.time() - time.monotonic()
        return {
            "uid": run_file.uid,
            "epoch": run_file.epoch,
            "run": run_file.run,
            "attempt": run_file.attempt,
            "phase": self._phase(),
            "sparkVersion": self._spark_version,
            "uiUrl": self._ui_url,
            "startedAt": self._started_at,
            "at": iso(time.time()),
            "executors": self._observer.executors if self._observer else None,
            "application": {"finished": self._conductor.application_finished},
            "queries": [to_status(view, clock_offset=offset) for view in self._views()],
            "rehearsal": self._parts.rehearsal.result() if self._parts.rehearsal else None,
            "activation": self._activation.to_json() if self._activation else None,
            "repartition": self._repartition.to_json() if self._repartition else None,
        }

    def _phase(self) -> str:
        if self._conductor.phase is not None:
            return self._conductor.phase
        if not self._running:
            return "Starting"
        rehearsal = self._parts.rehearsal
        if rehearsal is not None and rehearsal.phase != "Active":
            return rehearsal.phase
        # A script may take its time before its first query: until then nothing is read.
        return "Running" if self._views() or self._conductor.application_finished else "Starting"

    def _views(self) -> list[QueryView]:
        return self._observer.views() if self._observer else []

    def _drain(self, timeout_seconds: float | None, snapshots_first: bool) -> dict[str, Any]:
        if not self._conductor.draining:
            limit = self._run_file.drain_timeout_seconds if timeout_seconds is None else timeout_seconds
            self._conductor.tell(DrainRequested("the agent was asked to", limit, snapshots_first))
        return {"uid": self._run_file.uid, "phase": "Draining"}

    def _activate(self, body: bytes) -> dict[str, Any]:
        """Raises what is wrong with the order; the rest is done in the background and told in the status."""
        order = parse_order(body)
        if self._activation is None:
            raise NotInStandby("this is no candidate")
        if self._conductor.phase is not None:
            raise NotInStandby("the driver ends")
        is_new = order != self._activation.order
        self._activation.ask(order)
        if is_new and self._ring is not None:
            self._ring.read_again()
        return {"uid": self._run_file.uid, "phase": self._phase()}

    def _metrics(self) -> bytes:
        from headrace_jobs.harness.metrics import render_metrics  # noqa: PLC0415 - only who scrapes pays for it

        return render_metrics(self._run_file, self._views(), spark_version=self._spark_version)

    def _write_process_file(self, jvm_pid: int | None) -> None:
        content = {
            "uid": self._run_file.uid,
            "pid": os.getpid(),
            "createTime": process_create_time(os.getpid()),
            "jvmPid": jvm_pid,
            "jvmCreateTime": process_create_time(jvm_pid) if jvm_pid is not None else None,
            "agentPort": self._listening.getsockname()[1],
        }
        write_json(self._run_file.process_file, json.dumps(content))


def _java_environment() -> dict[str, str]:
    """Whoever started us has chosen the Java already: looking again would cost a process."""
    if "JAVA_HOME" in os.environ:
        return {}
    try:
        return java_environment()
    except JavaMissing as error:
        raise CannotStart(str(error)) from None


def _java_advice() -> str:
    try:
        java = find_java()
    except JavaMissing as error:
        return str(error)
    return f"Java {java.major} of {java.home} was used; the log has the JVM's own words"
