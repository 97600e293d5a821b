"""run.json of one attempt: everything the harness is told (headrace_jobs.harness.runfile reads it)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil

from headrace.api import StreamJobSpec
from headrace.core.actions import StartAttempt
from headrace.core.manifests import Candidacy
from headrace.core.manifests.event_log import event_log_conf
from headrace.core.manifests.kafka_files import kafka_section
from headrace.core.manifests.run_file import rehearsal_section
from headrace.core.model import Job
from headrace.core.start import driver_start
from headrace.local.conf import dev_spark_conf, state_partitions
from headrace.local.layout import AttemptFiles
from headrace.local.secrets import local_path
from headrace_jobs.jvm import java_environment
from headrace_jobs.store import directory_url


def run_file(
    job: Job,
    spec: StreamJobSpec,
    action: StartAttempt,
    *,
    files: AttemptFiles,
    store: Path,
    code_dir: Path,
    pinned: dict[str, Any],
    once: bool,
    ui: bool,
    candidacy: Candidacy | None = None,
) -> dict[str, Any]:
    entry = pinned["entry"]
    conf = dev_spark_conf(spec, cpus=os.cpu_count() or 1, memory_bytes=psutil.virtual_memory().total, ui=ui)
    jars = [str((Path(pinned["root"]) / jar).resolve()) for jar in spec.application.jars]
    if jars:
        conf["spark.jars"] = ",".join(filter(None, [conf.get("spark.jars"), *jars]))
    conf |= event_log_conf(spec, store=directory_url(store), run=action.run)
    interval = spec.trigger.interval
    return {
        "job": {"namespace": job.namespace, "name": job.name, "uid": job.uid},
        "run": action.run,
        "attempt": action.attempt,
        "epoch": action.epoch,
        "uid": f"{job.uid}-r{action.run}-a{action.attempt}"
        if candidacy is None
        else f"{job.uid}-c{candidacy.number}",
        "store": directory_url(store),
        "application": {
            "file": str(code_dir / entry) if entry is not None else None,
            "module": spec.application.module,
            "args": list(spec.application.args),
            "pyFiles": [str(code_dir / name) for name in pinned["pyFiles"]],
        },
        "sparkConf": conf,
        "trigger": {
            "mode": "AvailableNow" if once else spec.trigger.mode,
            "intervalSeconds": interval.seconds if interval is not None else None,
        },
        "kafka": kafka_section(spec.kafka, where=lambda file: str(local_path(file, os.environ))),
        "start": driver_start(job.spec.start_from, started_from=action.started_from),
        "agent": {"host": "127.0.0.1", "port": 0, "tokenFile": None},
        "terminationMessagePath": str(files.termination.absolute()),
        "processFile": str(files.process.absolute()),
        "drainTimeoutSeconds": spec.drain_timeout.seconds,
        "watchParent": True,
        "watchdog": {
            "batchTimeoutSeconds": spec.watchdog.batch_timeout.seconds,
            "action": spec.watchdog.action,
        },
        "repartition": state_partitions(spec) if action.repartition else None,
        "mode": "active" if candidacy is None else "rehearse",
        "rehearsal": rehearsal_section(candidacy),
    }


def attempt_environment(spec: StreamJobSpec, *, code_dir: Path, token: str) -> dict[str, str]:
    env = java_environment()
    for variable in spec.driver.env:
        if variable.value is not None:
            env[variable.name] = variable.value
    search = [str(code_dir), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **env,
        "PYTHONPATH": os.pathsep.join(search),
        "HEADRACE_AGENT_TOKEN": token,
        "PYTHONUNBUFFERED": "1",
    }
