"""The CustomResourceDefinitions, made from the models. Pure: models in, objects out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from headrace.api.model import ApiModel
from headrace.api.names import GROUP, VERSION
from headrace.api.savepoint import StreamSavepoint
from headrace.api.schema import Schema, plain_schema
from headrace.api.streamjob import StreamJob


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`; wide ones need `-o wide`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            column["description"] = self.description
        return column | ({"priority": 1} if self.wide else {})


@dataclass(frozen=True)
class Kind:
    """One kind of object, as the CRD names it."""

    model: type[ApiModel]
    name: str
    plural: str
    short: str
    columns: tuple[Column, ...]
    scale: dict[str, str] | None = None


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


_READY = Column("Ready", _condition("Ready", "status"))
_REASON = Column("Reason", _condition("Ready", "reason"), wide=True)
_AGE = Column("Age", ".metadata.creationTimestamp", type="date")

KINDS: tuple[Kind, ...] = (
    Kind(
        model=StreamJob,
        name="StreamJob",
        plural="streamjobs",
        short="sj",
        columns=(
            Column("State", ".status.state", description="What the job does now"),
            _READY,
            Column("Executors", ".status.executors.replicas", type="integer"),
            Column(
                "Lag",
                ".status.lag.band",
                description="Within the objective, behind it, or about to lose data",
            ),
            Column("Run", ".status.run.number", type="integer"),
            Column("Restarts", ".status.restarts.total", type="integer", wide=True),
            _REASON,
            _AGE,
        ),
        scale={
            "specReplicasPath": ".spec.executors.count",
            "statusReplicasPath": ".status.executors.replicas",
            "labelSelectorPath": ".status.executors.selector",
        },
    ),
    Kind(
        model=StreamSavepoint,
        name="StreamSavepoint",
        plural="streamsavepoints",
        short="ssp",
        columns=(
            Column("Job", ".spec.job.name"),
            Column("State", ".status.state", description="What happens to the savepoint now"),
            _READY,
            Column("Batch", ".status.batch", type="integer"),
            Column("Size", ".status.size"),
            Column("Verified", ".status.verified.level"),
            Column("Cause", ".spec.cause", wide=True),
            Column("Path", ".status.path", wide=True),
            _REASON,
            _AGE,
        ),
    ),
)


def custom_resource_definition(kind: Kind) -> dict[str, Any]:
    """The CRD of one kind."""
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale:
        subresources["scale"] = kind.scale
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": ["headrace"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [column.as_json() for column in kind.columns],
                    "subresources": subresources,
                    "schema": {"openAPIV3Schema": structural_schema(kind.model)},
                }
            ],
        },
    }


def structural_schema(model: type[ApiModel]) -> Schema:
    """The schema in the dialect of the API server."""
    schema = _structural(plain_schema(model))
    properties = schema["properties"]
    properties["apiVersion"] = {"type": "string"}
    properties["kind"] = {"type": "string"}
    # The API server owns the rest of the metadata. The length is what it allows anyway; said here, it bounds
    # the cost of the rules about the name.
    properties["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 253}},
    }
    schema["required"] = ["spec"]
    return schema


# The order in which a person reads a field.
_ORDER = ("type", "description", "default", "enum", "required", "properties", "items", "additionalProperties")


def _structural(schema: Schema) -> Schema:
    kept = {key: value for key, value in schema.items() if not key.startswith("x-headrace-")}
    # Unknown fields are dropped with a warning by the API server; a structural schema may not forbid them.
    if isinstance(kept.get("additionalProperties"), bool):
        del kept["additionalProperties"]
    if "properties" in kept:
        properties = cast(dict[str, Schema], kept["properties"])
        kept["properties"] = {name: _structural(each) for name, each in properties.items()}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = _structural(kept[key])
    ordered = [key for key in _ORDER if key in kept]
    return {key: kept[key] for key in (*ordered, *(key for key in kept if key not in ordered))}
