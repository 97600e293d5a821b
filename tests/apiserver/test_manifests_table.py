"""The table of good and bad manifests, judged by a real API server: the CRDs say the same as the models."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.api.problems import parse_or_explain
from headrace.api.sparkconf import OWNED, owner_of
from tests.cluster.api import Answer, Api
from tests.manifest_cases.defaults import plain
from tests.manifests_table import BAD, BAD_EDITS, GOOD, GOOD_EDITS, Bad, BadEdit, Manifest, a_job

EXAMPLES_DIRECTORY = Path(__file__).parents[2] / "examples"
EXAMPLES = [*sorted(EXAMPLES_DIRECTORY.glob("*.yaml")), EXAMPLES_DIRECTORY / "demo/job.yaml"]
PLURALS = {"StreamJob": "streamjobs", "StreamSavepoint": "streamsavepoints"}
# What `kubectl apply` asks for, and what a client that asks for nothing gets.
STRICT, LENIENT = "Strict", "Ignore"
# One of each: a key that ends with * stands for all that begin like it.
OWNED_KEYS = sorted({key.replace("*", "anything") for owned in OWNED for key in owned.keys})


@pytest.mark.parametrize("manifest", GOOD.values(), ids=GOOD.keys())
def test_a_good_manifest_is_accepted_and_gets_the_defaults_of_the_models(api: Api, manifest: Manifest):
    answer = _try(api, manifest, validation=STRICT)
    assert answer.message == ""
    ours, theirs = parse_or_explain(manifest), parse_or_explain(answer.body)
    assert not isinstance(ours, list) and not isinstance(theirs, list), theirs
    assert theirs.spec == ours.spec
    # Not only the same after parsing: what a user reads in `kubectl get -o yaml` is what will be done.
    assert plain(answer.body["spec"]) == plain(ours.spec.to_manifest())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.relative_to(EXAMPLES_DIRECTORY)))
def test_an_example_is_accepted(api: Api, example: Path):
    documents = [one for one in yaml.safe_load_all(example.read_text()) if one["kind"] in PLURALS]
    assert documents
    for document in documents:
        # Wherever it is to live: the namespaces of the examples are not here.
        metadata = {key: value for key, value in document["metadata"].items() if key != "namespace"}
        assert _try(api, {**document, "metadata": metadata}, validation=STRICT).message == ""


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_manifest_is_refused_by_the_server_itself(api: Api, bad: Bad):
    answer = _try(api, bad.manifest, validation=LENIENT)
    assert answer.ok == (bad.server == "accepts"), answer.message


@pytest.mark.parametrize("bad", [bad for bad in BAD if bad.server == "accepts"], ids=lambda bad: bad.name)
def test_what_the_server_would_drop_is_refused_for_kubectl(api: Api, bad: Bad):
    refused = _try(api, bad.manifest, validation=STRICT)
    assert "unknown field" in refused.message


@pytest.mark.parametrize("edit", BAD_EDITS, ids=lambda edit: edit.name)
def test_a_bad_edit_is_refused(api: Api, namespace: str, edit: BadEdit):
    path = _create(api, namespace, edit.old, edit.old_status)
    assert _edit(api, path, edit.new).status == 422


@pytest.mark.parametrize(("old", "new", "status"), GOOD_EDITS.values(), ids=GOOD_EDITS.keys())
def test_a_good_edit_is_accepted(api: Api, namespace: str, old: Manifest, new: Manifest, status: Manifest):
    path = _create(api, namespace, old, status)
    assert _edit(api, path, new).message == ""


@pytest.mark.parametrize("key", OWNED_KEYS)
def test_a_setting_that_headrace_owns_is_refused_with_the_reason(api: Api, key: str):
    owner = owner_of(key)
    assert owner is not None
    assert owner.message in _try(api, a_job(sparkConf={key: "x"}), validation=LENIENT).message


def test_every_rule_of_the_definitions_is_broken_by_some_manifest(
    api: Api, namespace: str, crds: dict[str, dict[str, Any]]
):
    """A CEL rule that nothing breaks may be one that never fires."""
    tried = [*(bad.manifest for bad in BAD), *(a_job(sparkConf={key: "x"}) for key in OWNED_KEYS)]
    said = [_try(api, manifest, validation=LENIENT).message for manifest in tried]
    for number, edit in enumerate(BAD_EDITS):
        renamed = [_renamed(manifest, number) for manifest in (edit.old, edit.new)]
        said.append(_edit(api, _create(api, namespace, renamed[0], edit.old_status), renamed[1]).message)
    everything = "\n".join(said)
    unheard = [
        message
        for definition in crds.values()
        for message in _rule_messages(definition["spec"]["versions"][0]["schema"])
        if message not in everything
    ]
    assert unheard == []


def _try(api: Api, manifest: Any, *, validation: str) -> Answer:
    """Nothing is kept: defaults, schema and rules are all looked at in a dry run."""
    return api.create(_collection("default", manifest), manifest, dryRun="All", fieldValidation=validation)


def _create(api: Api, namespace: str, manifest: Manifest, status: Manifest) -> str:
    collection = _collection(namespace, manifest)
    path = f"{collection}/{api.create(collection, manifest).need()['metadata']['name']}"
    if status:
        api.patch(f"{path}/status", {"status": status}).need()
    return path


def _edit(api: Api, path: str, manifest: Manifest) -> Answer:
    current = api.get(path).need()["metadata"]
    versioned = {"name": current["name"], "resourceVersion": current["resourceVersion"]}
    return api.replace(path, {**manifest, "metadata": versioned})


def _collection(namespace: str, manifest: Any) -> str:
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    return f"/apis/headrace.dev/v1alpha1/namespaces/{namespace}/{PLURALS.get(str(kind), 'streamjobs')}"


def _renamed(manifest: Manifest, number: int) -> Manifest:
    return {**manifest, "metadata": {"name": f"{manifest['metadata']['name']}-{number}"}}


def _rule_messages(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [message for one in schema for message in _rule_messages(one)]
    if not isinstance(schema, dict):
        return []
    own = [rule["message"] for rule in schema.get("x-kubernetes-validations", [])]
    return own + [message for below in schema.values() for message in _rule_messages(below)]
