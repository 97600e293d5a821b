"""The part of an object's metadata that Headrace reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict

from headrace.api.edits import SetValue
from headrace.api.forms import Form
from headrace.api.model import ApiModel, Broken, Items, plain_field
from headrace.api.names import as_name

# What else a name must be is a rule of its kind, or of Kubernetes.
NAME = Form(
    expects="the name of the object",
    pattern=None,
    example="orders",
    max_length=253,
    suggest=lambda value: as_name(str(value)),
)


class OwnerReference(ApiModel):
    """An object that owns this one."""

    model_config = ConfigDict(extra="ignore")

    kind: str = plain_field("Its kind.")
    name: str = plain_field("Its name.")
    uid: str = plain_field("Its uid.")


class ObjectMeta(ApiModel):
    """Kubernetes owns this schema and adds to it: what Headrace does not know, it ignores."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, NAME] = plain_field("Name of the object.")
    namespace: str | None = plain_field("Its namespace.", default=None)
    uid: str | None = plain_field("Its identity, also among objects of the same name.", default=None)
    generation: int = plain_field("Counts the edits of the spec.", default=0, ge=0)
    resource_version: str | None = plain_field("Version for preconditions.", default=None)
    labels: dict[str, str] = plain_field("Labels.", default={})
    annotations: dict[str, str] = plain_field("Annotations.", default={})
    finalizers: Items[str] = plain_field("What must happen before it is gone.", default=())
    owner_references: Items[OwnerReference] = plain_field("Its owners.", default=())
    creation_timestamp: str | None = plain_field("When it was created.", default=None)
    deletion_timestamp: str | None = plain_field("When its deletion was asked for.", default=None)


def badly_named(name: str, message: str, *, longest: int) -> Broken:
    """Of the object itself, with a name that would do."""
    better = as_name(name, longest=longest)
    return Broken(
        message=message,
        at=("metadata", "name"),
        fix=f"name it {better!r}, for example",
        edits=(SetValue(("metadata", "name"), better),),
    )
