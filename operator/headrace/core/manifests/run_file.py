"""run.json: all that the harness is told. Its reader, headrace_jobs.harness.runfile, refuses the unknown."""

from __future__ import annotations

from headrace.core.manifests.attempt import Candidacy, DriverAttempt, Manifest, Platform
from headrace.core.manifests.code import program_file, py_files
from headrace.core.manifests.kafka_files import kafka_section
from headrace.core.manifests.places import AGENT_PORT, CODE, TOKEN, TOKEN_FILE, WORK
from headrace.core.manifests.spark_conf import spark_conf

TERMINATION_MESSAGE = "/dev/termination-log"


def run_file(attempt: DriverAttempt, platform: Platform) -> Manifest:
    spec = attempt.spec
    interval = spec.trigger.interval
    return {
        "job": {"namespace": attempt.namespace, "name": attempt.job, "uid": attempt.job_uid},
        "run": attempt.run,
        "attempt": attempt.attempt,
        "epoch": attempt.epoch,
        "uid": attempt.uid,
        "store": attempt.store,
        "application": {
            "file": _application_file(attempt),
            "module": spec.application.module,
            "args": list(spec.application.args),
            "pyFiles": [each.path for each in py_files(spec.application)],
        },
        "sparkConf": spark_conf(attempt, platform),
        "trigger": {
            "mode": spec.trigger.mode,
            "intervalSeconds": interval.seconds if interval is not None else None,
        },
        "kafka": kafka_section(spec.kafka, where=lambda file: file.path),
        "start": dict(attempt.start) if attempt.start is not None else None,
        "agent": {"host": "0.0.0.0", "port": AGENT_PORT, "tokenFile": f"{TOKEN}/{TOKEN_FILE}"},  # noqa: S104
        "terminationMessagePath": TERMINATION_MESSAGE,
        "processFile": f"{WORK}/process.json",
        "drainTimeoutSeconds": spec.drain_timeout.seconds,
        # Kubernetes ends a pod by signal; there is no supervisor at the other end of a pipe.
        "watchParent": False,
        "watchdog": {
            "batchTimeoutSeconds": spec.watchdog.batch_timeout.seconds,
            "action": spec.watchdog.action,
        },
        "repartition": spec.state.partitions if attempt.repartition else None,
        "mode": "active" if attempt.candidacy is None else "rehearse",
        "rehearsal": rehearsal_section(attempt.candidacy),
    }


def rehearsal_section(candidacy: Candidacy | None) -> Manifest | None:
    """How a candidate rehearses; nothing where it is no candidate."""
    if candidacy is None:
        return None
    policy = candidacy.policy
    return {
        "fromRun": candidacy.from_run,
        "batches": policy.rehearsal.batches,
        "timeLimitSeconds": policy.rehearsal.time_limit.seconds,
        "callForeachBatch": policy.rehearsal.call_foreach_batch,
        "stateCompatible": policy.state_compatible,
        "standbySeconds": policy.standby.max_age.seconds if policy.standby.enabled else None,
    }


def _application_file(attempt: DriverAttempt) -> str | None:
    application = attempt.spec.application
    if application.config_map is not None:
        return f"{CODE}/{application.config_map.key}"
    program = program_file(application)
    return program.path if program is not None else None
