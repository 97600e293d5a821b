"""What a run was pinned with, read back by itself: for a job whose spec as it stands cannot be read."""

from __future__ import annotations

from headrace.api import StreamJobSpec
from headrace.core.manifests import read_run_pin
from headrace.kube.client import Api
from headrace.kube.errors import NotFound
from headrace.kube.found import is_owned
from headrace.kube.resources import CONFIG_MAPS


async def pinned_spec(api: Api, *, namespace: str, job: str, job_uid: str, run: int) -> StreamJobSpec | None:
    try:
        found = await api.get(CONFIG_MAPS, namespace, f"{job}-r{run}")
    except NotFound:
        return None
    pin = read_run_pin(found, run=run) if is_owned(found, job_uid) else None
    return pin.spec if pin is not None else None
