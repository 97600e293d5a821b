"""What is wrong with a manifest: for each fault the field, the value, a sentence, and a fix that mends it.

Every fix is tried here before it is offered: applied to the manifest, it makes its fault go away, and brings
no new one if that can be had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from headrace.api.edits import Fix, Path, Rename, SetValue, apply_edits, below, path_text, value_at
from headrace.api.fixes import Fault, proposals, set_fix
from headrace.api.guesses import nearest_name
from headrace.api.model import ApiModel, Broken
from headrace.api.names import API_VERSION
from headrace.api.savepoint import StreamSavepoint
from headrace.api.schema import Schema, plain_schema
from headrace.api.secrets import shown
from headrace.api.streamjob import StreamJob

MODELS: dict[str, type[StreamJob] | type[StreamSavepoint]] = {
    "StreamJob": StreamJob,
    "StreamSavepoint": StreamSavepoint,
}

# metav1.ObjectMeta. The models ignore what they do not know of it, since Kubernetes may add to it; a person
# who writes a manifest means one of these.
_METADATA_FIELDS = (
    "name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid",
    "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "selfLink",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One fault of a manifest, as it is shown. `value` never holds a secret."""

    path: Path
    message: str
    fix: Fix
    value: str = ""
    points_at_key: bool = False

    @property
    def field(self) -> str:
        return path_text(self.path) or "document"


def parse_or_explain(manifest: Any) -> StreamJob | StreamSavepoint | list[Problem]:
    """The object a manifest describes, or everything that is wrong with it."""
    model = model_for(manifest)
    faults = find_faults(manifest, model)
    if not faults:
        return model.parse(manifest)
    schema = _schema_for(model)
    return [_problem(fault, faults, manifest, model, schema) for fault in faults]


def model_for(manifest: Any) -> type[StreamJob] | type[StreamSavepoint]:
    """The kind a manifest is of, or most likely meant to be of."""
    if not isinstance(manifest, dict):
        return StreamJob
    near = nearest_name(str(cast(dict[str, Any], manifest).get("kind")), MODELS)
    if near:
        return MODELS[near]
    is_savepoint = value_at(manifest, ("spec", "job")) and not value_at(manifest, ("spec", "application"))
    return StreamSavepoint if is_savepoint else StreamJob


@cache
def _schema_for(model: type[ApiModel]) -> Schema:
    """Read only: it costs more to make than a hundred manifests to judge."""
    schema = plain_schema(model)
    metadata = schema["properties"]["metadata"]
    known: dict[str, Schema] = {name: {} for name in _METADATA_FIELDS} | metadata["properties"]
    properties = {**schema["properties"], "metadata": {**metadata, "properties": known}}
    # The models forgive a missing apiVersion and kind for the sake of code; the API server does not.
    return {**schema, "properties": properties, "required": ["apiVersion", "kind", "metadata", "spec"]}


# ---- finding


def find_faults(manifest: Any, model: type[ApiModel]) -> list[Fault]:
    if not isinstance(manifest, dict):
        return [Fault("document", (), _mismatch(manifest, "an object (apiVersion, kind, …)"), manifest)]
    faults = _faults_of_frame(cast(dict[str, Any], manifest))
    try:
        model.parse(manifest)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            faults += _faults(details)
    return faults


def _faults_of_frame(manifest: dict[str, Any]) -> list[Fault]:
    """What the models forgive and the API server does not."""
    frame = ("apiVersion", "kind")
    faults = [Fault("missing", (name,), "is missing") for name in frame if manifest.get(name) is None]
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict):
        faults += [
            _unknown_field(("metadata", name), value)
            for name, value in cast(dict[str, Any], metadata).items()
            if name not in _METADATA_FIELDS
        ]
    return faults


def _faults(details: ErrorDetails) -> list[Fault]:
    """A fault for each error; several for broken rules, which are found together."""
    kind, path, value = details["type"], details["loc"], details["input"]
    context = details.get("ctx", {})
    match kind:
        case "rules":
            broken = cast(tuple[Broken, ...], context["broken"])
            return [Fault("rules", path + each.at, each.message, broken=each) for each in broken]
        case "form":
            return [Fault("form", path, context["problem"], value, form=context["form"])]
        case "extra_forbidden":
            return [_unknown_field(path, value)]
        case "missing":
            return [Fault("missing", path, "is missing")]
        case _:
            return [Fault(kind, path, _explained(kind, context, value), value)]


def _unknown_field(path: Path, value: Any) -> Fault:
    return Fault("extra_forbidden", path, "there is no such field", value, points_at_key=True)


def _explained(kind: str, context: dict[str, Any], value: Any) -> str:  # noqa: PLR0911  one line for each kind
    match kind:
        case "int_type" | "int_from_float":
            return "is not a whole number"
        case "bool_type":
            return "is not true or false"
        case "string_type":
            return "is not a text: put it in quotes"
        case "greater_than_equal":
            return f"is too small: at least {context['ge']}"
        case "less_than_equal":
            return f"is too large: at most {context['le']}"
        case "literal_error":
            return _none_of(context["expected"])
        case "too_long":
            return f"has {context['actual_length']} entries: at most {context['max_length']}"
        case "string_too_short":
            return "is empty"
        case "model_type" | "model_attributes_type" | "dict_type":
            return _mismatch(value, "a map of fields")
        case "tuple_type":
            return _mismatch(value, "a list")
        case _:
            return f"is not valid ({kind})"


def _none_of(expected: str) -> str:
    """Pydantic lists the choices like Python: 'Auto', 'Advise' or 'Off'; True."""
    choices = expected.replace(" or ", ", ").replace("'", "").replace("True", "true")
    return f"is none of {choices}" if "," in choices else f"is not {choices}"


def _mismatch(value: Any, expected: str) -> str:
    match value:
        case dict():
            return f"is a map; {expected} is expected"
        case list():
            return f"is a list; {expected} is expected"
        case _:
            return f"is a single value; {expected} is expected"


# ---- explaining


def _problem(
    fault: Fault, all_faults: list[Fault], manifest: Any, model: type[ApiModel], schema: Schema
) -> Problem:
    value = shown(fault.path, fault.value, siblings=value_at(manifest, fault.path[:-1]))
    says_value = isinstance(fault.value, str | int | float) and fault.kind not in (
        "extra_forbidden",
        "missing",
    )
    return Problem(
        path=fault.path,
        message=f"{value} {fault.message}" if says_value else fault.message,
        fix=_tried_fix(fault, all_faults, manifest, model, schema),
        value="" if fault.value is None else value,
        points_at_key=fault.points_at_key,
    )


def _tried_fix(
    fault: Fault, all_faults: list[Fault], manifest: Any, model: type[ApiModel], schema: Schema
) -> Fix:
    """The first proposal that mends the fault and breaks nothing; failing that, the first that mends it."""
    known = {_identity(each) for each in all_faults}
    mending: list[Fix] = []
    for fix in _completed(fault, manifest, model, schema):
        left = find_faults(apply_edits(manifest, fix.edits), model)
        if _identity(fault) in map(_identity, left):
            continue
        new = [each for each in left if _identity(each) not in known]
        if not new or _only_carried_along(new, fix):
            return fix
        mending.append(fix)
    return mending[0] if mending else _anew(model)


def _anew(model: type[ApiModel]) -> Fix:
    return Fix("start from an example: `headrace init` writes one", (SetValue((), minimal_manifest(model)),))


def _only_carried_along(faults: list[Fault], fix: Fix) -> bool:
    """Faults inside what was renamed were there before, under the wrong name."""
    homes = [(*edit.path[:-1], edit.to) for edit in fix.edits if isinstance(edit, Rename)]
    return all(any(_inside(fault.path, home) for home in homes) for fault in faults)


def _identity(fault: Fault) -> tuple[str, Path, str]:
    return fault.kind, fault.path, fault.message


def _completed(fault: Fault, manifest: Any, model: type[ApiModel], schema: Schema) -> Iterator[Fix]:
    """The proposals; where one leaves a rule of its own object broken, also together with what mends that."""
    for fix in proposals(fault, manifest, schema):
        yield fix
        fixed = apply_edits(manifest, fix.edits)
        rules = [
            (below(left.path[: len(left.path) - len(left.broken.at)], left.broken.edits), left.broken.fix)
            for left in find_faults(fixed, model)
            if left.broken is not None and _inside(left.path, fault.path)
        ]
        for edits, sentence in rules:
            if isinstance(fix.edits[0], SetValue) and all(_inside(edit.path, fault.path) for edit in edits):
                value = value_at(apply_edits(fixed, edits), fault.path)
                yield set_fix(fault.path, value, "add" if fault.kind == "missing" else "write")
            else:
                yield Fix(f"{fix.sentence}, and {sentence}", (*fix.edits, *edits))


def _inside(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer


def minimal_manifest(model: type[ApiModel] = StreamJob) -> dict[str, Any]:
    """The smallest manifest of a kind that is valid."""
    job: dict[str, Any] = {"application": {"file": "job.py"}}
    savepoint: dict[str, Any] = {"job": {"name": "orders"}}
    is_job = model is StreamJob
    return {
        "apiVersion": API_VERSION,
        "kind": "StreamJob" if is_job else "StreamSavepoint",
        "metadata": {"name": "orders"},
        "spec": job if is_job else savepoint,
    }
