"""Names: what Kubernetes allows, and what must fit into the names that Headrace derives from a job's."""

from __future__ import annotations

import re
from typing import Annotated

from headrace.api.forms import Form, as_text

GROUP = "headrace.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

PAUSE_ANNOTATION = f"{GROUP}/paused"
# A savepoint to go back to; "nightly@2026-01-31T08:00:00Z" is another request than "nightly" alone.
RESTORE_ANNOTATION = f"{GROUP}/restore"
# "5": leave run 5 for the last good version; "5 to 3": for what run 3 ran. Once run 5 is left, it is history.
ROLLBACK_ANNOTATION = f"{GROUP}/rollback"
# Of a StreamSavepoint: how far to check it again; "State@2026-01-31T08:00:00Z" is another one than "State".
VERIFY_ANNOTATION = f"{GROUP}/verify"
COLLECT_ANNOTATION = f"{GROUP}/collect-savepoints"
FINALIZER = f"{GROUP}/checkpoints"
SAVEPOINT_FINALIZER = f"{GROUP}/savepoint"

# The executors' StatefulSet is named by Spark: spark-s-<application id>-<resource profile>. Kubernetes
# appends an 11-character revision hash to a StatefulSet's name and puts the result in a label of at most 63
# characters. The application id is <job>-<epoch>: the epoch alone tells attempts apart, and seven digits of
# it last a century of a job that starts every five minutes.
STATEFUL_SET_NAME_MAX = 63 - 11
_EPOCH_DIGITS = 7
JOB_NAME_MAX = STATEFUL_SET_NAME_MAX - len("spark-s-") - len("-0") - len("-") - _EPOCH_DIGITS


def application_id(job: str, epoch: int) -> str:
    """Spark's application id of an attempt."""
    return f"{job}-{epoch}"


def executor_set_name(job: str, epoch: int) -> str:
    """The StatefulSet that Spark makes for the executors of an attempt (default resource profile)."""
    return f"spark-s-{application_id(job, epoch)}-0"


def candidate_set_name(job: str, number: int) -> str:
    """The same for the executors of a candidate, also when it has taken over."""
    return f"spark-s-{candidate_name(job, number)}-0"


def attempt_name(job: str, run: int, attempt: int) -> str:
    """The driver pod of an attempt, and its Service and ConfigMap."""
    return f"{job}-r{run}-a{attempt}"


def candidate_name(job: str, number: int) -> str:
    """The driver pod of a candidate, and its Service and ConfigMap; also Spark's id of its application."""
    return f"{job}-c{number}"


def as_name(text: str, *, longest: int = 253) -> str:
    """The nearest valid object name: `My Job_2` → `my-job-2`."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name = re.sub(r"^[0-9-]+", "", name) or "job"
    return name[:longest].strip("-")


def _suggest_name(value: object) -> str | None:
    text = as_text(value)
    return as_name(text) if text else None


JOB_NAME = Form(
    expects=f"a job name: at most {JOB_NAME_MAX} lower-case letters, digits and '-', starting with a letter",
    pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
    example="orders",
    max_length=JOB_NAME_MAX,
    suggest=lambda value: as_name(str(value), longest=JOB_NAME_MAX) if value else None,
)

OBJECT_NAME = Form(
    expects="the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
    pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    example="name",
    max_length=253,
    suggest=_suggest_name,
)
ObjectName = Annotated[str, OBJECT_NAME]

DNS_LABEL = Form(
    expects="a name of lower-case letters, digits and '-'",
    pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    example="data",
    max_length=63,
    suggest=_suggest_name,
)
DnsLabel = Annotated[str, DNS_LABEL]

DATA_KEY = Form(
    expects="a key in a Secret or ConfigMap: letters, digits, '-', '_' and '.'",
    pattern=r"^[-._a-zA-Z0-9]+$",
    example="key",
    max_length=253,
    suggest=lambda value: re.sub(r"[^-._a-zA-Z0-9]+", "-", as_text(value) or "").strip("-") or None,
)
DataKey = Annotated[str, DATA_KEY]

ENV_NAME = Form(
    expects="the name of an environment variable",
    pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$",
    example="NAME",
    max_length=253,
    suggest=lambda value: re.sub(r"^([0-9])", r"_\1", re.sub(r"\W+", "_", as_text(value) or "")) or None,
)
EnvName = Annotated[str, ENV_NAME]
JobName = Annotated[str, JOB_NAME]
