"""The garbage collector of a fake cluster."""

from __future__ import annotations

from headrace.kube.found import is_owned
from tests.sim.kube.fake_api import FakeApi, Place


def collect_garbage(api: FakeApi, job_place: Place) -> None:
    """Of a job that is deleted in the foreground, whatever it owns goes, each with its own grace. So does
    what was made for an owner that is gone by then."""
    _collect_orphans(api)
    job = api.objects.get(job_place)
    if job is None or "foregroundDeletion" not in (job["metadata"].get("finalizers") or ()):
        return
    uid = job["metadata"]["uid"]
    owned = [place for place, one in api.objects.items() if is_owned(one, uid)]
    for place in owned:
        one = api.objects.get(place, {})
        if one.get("status", {}).get("phase") == "Running":
            api.set(place, {"metadata": {"deletionTimestamp": api.stamp()}})
        elif one:
            api.remove(place)
    if not owned:
        left = [each for each in job["metadata"]["finalizers"] if each != "foregroundDeletion"]
        api.set(job_place, {"metadata": {"finalizers": left}})


def _collect_orphans(api: FakeApi) -> None:
    uids = {one["metadata"]["uid"] for one in api.objects.values()}
    for place, one in list(api.objects.items()):
        owners = [owner["uid"] for owner in one["metadata"].get("ownerReferences", ())]
        if owners and not uids.intersection(owners) and place in api.objects:
            api.remove(place)
