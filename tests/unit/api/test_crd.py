"""The CRDs: structural, bounded, up to date, and in agreement with the models."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml

from headrace.api.crd import KINDS, custom_resource_definition
from headrace.api.problems import parse_or_explain
from tests.manifest_cases.defaults import plain, with_defaults
from tests.manifests_table import BAD, DESIGN_SAMPLE, GOOD, Bad

ROOT = Path(__file__).resolve().parents[3]
CRDS = {kind.name: custom_resource_definition(kind) for kind in KINDS}
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def schema_of(kind: str) -> dict[str, Any]:
    return CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}.{key}")


ALL_NODES = [node for kind in CRDS for node in nodes(schema_of(kind), kind)]
SPEC_NODES = [(path, node) for path, node in ALL_NODES if ".spec" in path]


@pytest.mark.parametrize(("path", "node"), ALL_NODES, ids=[path for path, _ in ALL_NODES])
def test_the_schema_is_structural(path: str, node: dict[str, Any]):
    assert node.get("type") or node.get("x-kubernetes-int-or-string")
    forbidden = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "const", "title", "nullable", "examples"}
    assert not forbidden & node.keys()
    assert not [key for key in node if key.startswith("x-headrace")]
    assert not isinstance(node.get("additionalProperties"), bool)
    assert not ("properties" in node and "additionalProperties" in node)
    assert node.get("default", 0) is not None


@pytest.mark.parametrize(("path", "node"), SPEC_NODES, ids=[path for path, _ in SPEC_NODES])
def test_everything_in_a_spec_is_bounded(path: str, node: dict[str, Any]):
    """The API server prices a rule by the largest value it could meet."""
    if node.get("x-kubernetes-preserve-unknown-fields"):
        return
    match node.get("type"):
        case "string":
            assert "maxLength" in node or "enum" in node
        case "array":
            assert "maxItems" in node
        case "object" if "additionalProperties" in node:
            assert "maxProperties" in node
        case "integer":
            assert {"minimum", "maximum"} <= node.keys()
        case kind:
            assert kind in ("object", "boolean", None)


@pytest.mark.parametrize(("path", "node"), ALL_NODES, ids=[path for path, _ in ALL_NODES])
def test_a_list_that_is_a_map_requires_its_key(path: str, node: dict[str, Any]):
    for key in node.get("x-kubernetes-list-map-keys", []):
        assert node["x-kubernetes-list-type"] == "map"
        assert key in node["items"]["required"]


def test_a_default_obeys_its_own_schema():
    for path, node in ALL_NODES:
        if "default" in node:
            assert [*jsonschema.Draft202012Validator(node).iter_errors(node["default"])] == [], path


def test_the_frame_of_the_crds():
    job = CRDS["StreamJob"]["spec"]
    assert job["group"] == "headrace.dev"
    assert job["names"]["shortNames"] == ["sj"]
    assert job["names"]["categories"] == ["headrace"]
    assert CRDS["StreamSavepoint"]["spec"]["names"]["shortNames"] == ["ssp"]
    version = job["versions"][0]
    assert version["name"] == "v1alpha1"
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.executors.count",
        "statusReplicasPath": ".status.executors.replicas",
        "labelSelectorPath": ".status.executors.selector",
    }
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns == ["State", "Ready", "Executors", "Lag", "Run", "Restarts", "Reason", "Age"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_path_that_the_crd_names_exists_in_the_schema(kind):
    version = CRDS[kind.name]["spec"]["versions"][0]
    paths = [column["jsonPath"] for column in version["additionalPrinterColumns"]]
    paths += version["subresources"].get("scale", {}).values()
    for path in paths:
        names = path.partition("[")[0].strip(".").split(".")
        node = schema_of(kind.name)
        for name in names:
            known = node.get("properties", {})
            assert name in known or names[0] == "metadata", path
            node = known.get(name, {})


# ---- agreement with the models


def _schema_errors(manifest: Any) -> list[str]:
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    schema = _json_schema(schema_of(kind if kind in CRDS else "StreamJob"))
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(manifest)]


def _json_schema(schema: Any) -> Any:
    """What Kubernetes means by int-or-string, in the words of JSON Schema."""
    if isinstance(schema, list):
        return [_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _json_schema(value) for key, value in schema.items()}
    return (
        {**plain, "type": ["integer", "string"]}
        if schema.get("x-kubernetes-int-or-string") is True
        else plain
    )


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


@pytest.mark.parametrize("name", GOOD)
def test_the_schema_accepts_what_the_models_accept(name: str):
    assert _schema_errors(_without_nulls(GOOD[name])) == []


def _needs_more_than_a_schema(case: Bad) -> bool:
    """Rules, keys of lists and the frame: CEL, the API server itself, and the command line see to them."""
    in_cel = case.rule is not None or "sparkConf[" in case.field or "metadata.name" in case.field
    return in_cel or case.server == "accepts" or "twice" in case.says or case.field in ("kind", "apiVersion")


FOR_THE_SCHEMA = [case for case in BAD if not _needs_more_than_a_schema(case)]


@pytest.mark.parametrize("case", FOR_THE_SCHEMA, ids=lambda case: case.name)
def test_the_schema_refuses_what_the_models_refuse(case: Bad):
    if case.field.startswith("metadata"):
        assert case.server == "refuses"  # Kubernetes' own schema of metadata does
    else:
        assert _schema_errors(case.manifest) != []


@pytest.mark.parametrize("manifest", GOOD.values(), ids=GOOD.keys())
def test_defaults_of_schema_and_model_are_the_same(manifest: dict[str, Any]):
    stored = with_defaults(manifest, schema_of(manifest["kind"]))
    ours, theirs = parse_or_explain(manifest), parse_or_explain(stored)
    assert not isinstance(ours, list) and not isinstance(theirs, list)
    assert theirs.spec == ours.spec
    assert plain(stored["spec"]) == plain(ours.spec.to_manifest())


def test_every_default_of_a_spec_is_filled_in_for_some_manifest():
    """A default that every manifest writes itself, or has no place for, is one that nobody compares."""
    stored = [(one, with_defaults(one, schema_of(one["kind"]))) for one in GOOD.values()]

    def filled_in(path: str) -> bool:
        # Into an object that is written: the default of a whole object has the inner ones in it already.
        around = path.rpartition(".")[0]
        return any(
            _holds(before, around) and _holds(after, path) and not _holds(before, path)
            for before, after in stored
        )

    unseen = [path for path, node in SPEC_NODES if "default" in node and not filled_in(path)]
    assert unseen == []


def _holds(manifest: dict[str, Any], path: str) -> bool:
    kind, *names = path.split(".")
    return manifest["kind"] == kind and _reaches(manifest, names)


def _reaches(value: Any, names: list[str]) -> bool:
    match names:
        case []:
            return True
        case ["items", *rest]:
            return isinstance(value, list) and any(_reaches(one, rest) for one in value)
        case ["additionalProperties", *rest]:
            return isinstance(value, dict) and any(_reaches(one, rest) for one in value.values())
        case [name, *rest]:
            return isinstance(value, dict) and name in value and _reaches(value[name], rest)
    return False


# ---- files


def _generate() -> ModuleType:
    location = importlib.util.spec_from_file_location("generate", ROOT / "scripts" / "generate.py")
    assert location is not None
    assert location.loader is not None
    module = importlib.util.module_from_spec(location)
    location.loader.exec_module(module)
    return module


def test_the_generated_files_are_up_to_date():
    stale = _generate().stale_files()
    assert not stale, f"stale: {', '.join(stale)}. Run `make generate` and commit"


def test_a_stale_file_is_named_and_rewritten(tmp_path: Path):
    generate = _generate()
    assert sorted(generate.stale_files(tmp_path)) == sorted(generate.generated_files())
    generate.write_files(tmp_path)
    (tmp_path / "crds" / "streamjobs.yaml").write_text("old")
    assert list(generate.stale_files(tmp_path)) == ["crds/streamjobs.yaml"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_valid(path: Path):
    ours = [
        document
        for document in yaml.safe_load_all(path.read_text())
        if document["apiVersion"].startswith("headrace.dev")
    ]
    assert ours
    for document in ours:
        assert not isinstance(parse_or_explain(document), list)
        assert _schema_errors(document) == []


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


def test_the_editor_schema_knows_the_sample_and_a_misspelt_field():
    schema = yaml.safe_load((ROOT / "docs" / "reference" / "streamjob.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    sample = yaml.safe_load(DESIGN_SAMPLE)
    assert [*validator.iter_errors(sample)] == []
    sample["spec"]["exectors"] = {}
    assert "exectors" in next(validator.iter_errors(sample)).message


def test_the_reference_page_has_every_field():
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    for path, node in ALL_NODES:
        for name in node.get("properties", {}):
            assert f"| `{name}` |" in page or path in CRDS or path.endswith(".metadata"), f"{path}.{name}"
