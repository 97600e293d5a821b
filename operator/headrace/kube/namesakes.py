"""Objects that have a name of ours. Whose they are is looked at before anything is done with them. Pure."""

from __future__ import annotations

from headrace.core.manifests.ownership import JOB_LABEL
from headrace.core.model import NAME_TAKEN, Problem
from headrace.kube.client import Object
from headrace.kube.found import is_owned, name_of
from headrace.kube.labels import label


def name_taken(kind: str, thing: Object, *, job_uid: str) -> Problem | None:
    """Why a job cannot have what it has found under one of its names, if so."""
    if is_owned(thing, job_uid):
        return None
    return Problem(NAME_TAKEN, f"there is a {kind} {name_of(thing)} that is not this job's: delete it")


def label_lost(kind: str, thing: Object, *, job: str) -> Problem | None:
    """Ours, but it would never be found: that goes by the label, and so it would be made for ever."""
    if label(thing, JOB_LABEL) == job:
        return None
    name = name_of(thing)
    message = f"the {kind} {name} has lost its label {JOB_LABEL}: put it back, or delete the {kind}"
    return Problem(NAME_TAKEN, message)
