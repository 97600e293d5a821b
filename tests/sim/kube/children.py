"""What the operator has made of a spec, with nothing in it that a fresh job would have otherwise: numbers of
runs, attempts and epochs, uids, versions and times."""

from __future__ import annotations

import json
import re
from typing import Any

from headrace.api.names import application_id, attempt_name, executor_set_name
from headrace.core.manifests.keeper_pod import STORE_CHECK
from headrace.core.manifests.ownership import ATTEMPT_LABEL, EPOCH_LABEL, ROLE_LABEL, RUN_LABEL
from headrace.core.manifests.run_pin import PIN_ROLE
from headrace.kube.resources import CONFIG_MAPS, EVENTS, STATEFUL_SETS, STREAM_JOBS, STREAM_SAVEPOINTS
from tests.sim.kube.cluster import JOB, FakeCluster
from tests.sim.kube.fake_api import Object

Picture = dict[str, Any]
Numbers = tuple[int, int, int]  # run, attempt, epoch


def children(cluster: FakeCluster) -> Picture:
    """Everything of the job but what its past has left for those who look back: old attempts, pins and
    savepoints."""
    numbers = _numbers(cluster)
    picture: Picture = {"status": _status(cluster)}
    for (plural, _, name), thing in sorted(cluster.api.objects.items()):
        if plural not in (EVENTS.plural, STREAM_SAVEPOINTS.plural) and not _is_past(
            plural, name, thing, numbers
        ):
            picture[f"{plural}/{_unnumbered(name, numbers)}"] = _unnumbered(_said(plural, thing), numbers)
    return picture


def pinned(cluster: FakeCluster) -> Object:
    """What the run has kept of the spec and the code."""
    run = cluster.status.run
    assert run is not None
    data = dict(cluster.api.of(CONFIG_MAPS)[f"{JOB}-r{run.number}"]["data"])
    return {**data, "spec.json": json.loads(data["spec.json"])}


def _numbers(cluster: FakeCluster) -> Numbers | None:
    """Of the driver that lives, if one does."""
    if not cluster.live_drivers():
        return None
    labels = cluster.api.objects[cluster.driver_place()]["metadata"]["labels"]
    return int(labels[RUN_LABEL]), int(labels[ATTEMPT_LABEL]), int(labels[EPOCH_LABEL])


def _status(cluster: FakeCluster) -> Object:
    status = cluster.status
    conditions = {one.type: (one.status, one.reason) for one in status.conditions}
    return {"state": status.state, "conditions": conditions, "executors": status.executors.to_manifest()}


def _is_past(plural: str, name: str, thing: Object, numbers: Numbers | None) -> bool:
    labels = thing["metadata"].get("labels", {})
    if labels.get(ROLE_LABEL) == "executor":
        return True  # they follow from their StatefulSet
    if labels.get(ROLE_LABEL) == PIN_ROLE or plural == STREAM_SAVEPOINTS.plural:
        return True
    if plural == STATEFUL_SETS.plural:
        return numbers is None or name != executor_set_name(JOB, numbers[2])
    attempt = (labels.get(RUN_LABEL), labels.get(ATTEMPT_LABEL))
    return ATTEMPT_LABEL in labels and (numbers is None or attempt != (str(numbers[0]), str(numbers[1])))


def _said(plural: str, thing: Object) -> Object:
    """The object, without what only the server and the nodes write."""
    known = {key: thing["metadata"].get(key) for key in ("labels", "annotations", "finalizers")}
    metadata = {key: value for key, value in known.items() if value}
    if plural == STREAM_JOBS.plural:
        return {"metadata": metadata}
    said = {key: value for key, value in thing.items() if key not in ("metadata", "status")}
    if "stringData" in said:
        said["stringData"] = sorted(said["stringData"])  # a token is another one for each attempt
    if "data" in said:
        said["data"] = {key: _parsed(key, text) for key, text in said["data"].items()}
    before = said.get("spec", {}).get("initContainers")
    if before is not None:
        # Only the first run looks for an earlier lineage in the store.
        kept = [one for one in before if one["name"] != STORE_CHECK]
        said["spec"] = {**said["spec"], "initContainers": kept}
    return {**said, "metadata": metadata}


def _parsed(key: str, text: str) -> Any:
    if not key.endswith(".json"):
        return text
    content = json.loads(text)
    # Only a run that follows one with another number has anything to split.
    return {name: value for name, value in content.items() if name != "repartition"}


def _unnumbered(value: Any, numbers: Numbers | None) -> Any:
    if numbers is None:
        return value
    run, attempt, epoch = numbers
    match value:
        case dict():
            count = {"run": run, "attempt": attempt, "epoch": epoch}
            count |= {RUN_LABEL: str(run), ATTEMPT_LABEL: str(attempt), EPOCH_LABEL: str(epoch)}
            return {
                key: "#" if key in count and one == count[key] else _unnumbered(one, numbers)
                for key, one in value.items()
            }
        case list():
            return [_unnumbered(one, numbers) for one in value]
        case str():
            text = value.replace(attempt_name(JOB, run, attempt), f"{JOB}-r#-a#")
            text = re.sub(rf"-r{run}-a{attempt}$", "-r#-a#", text)
            text = re.sub(rf"\b{application_id(JOB, epoch)}\b", f"{JOB}-#", text)
            return re.sub(rf"(/run-|--run=){run}\b", r"\1#", text)
        case _:
            return value
