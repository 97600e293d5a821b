"""What a run runs, kept beside it as an immutable ConfigMap: a restart never picks up anything newer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from headrace.api import StreamJobSpec
from headrace.core.manifests.config_map import code_key
from headrace.core.manifests.ownership import Manifest, job_labels, owned_metadata

PIN_ROLE = "pin"

_SPEC, _REVISION, _CODE_DIGEST, _LOCATION = "spec.json", "revision", "codeDigest", "location"


@dataclass(frozen=True, kw_only=True)
class RunPin:
    namespace: str
    job: str
    job_uid: str
    run: int
    revision: str
    code_digest: str
    spec: StreamJobSpec
    location: str
    """Root of the store. Kept, because the platform's default may change and the state does not move."""

    code: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files of the application by name, when they come from a ConfigMap."""

    @property
    def name(self) -> str:
        return f"{self.job}-r{self.run}"


def run_pin(pin: RunPin) -> Manifest:
    labels = job_labels(pin.job, role=PIN_ROLE, run=pin.run)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned_metadata(
            pin.name, namespace=pin.namespace, job=pin.job, job_uid=pin.job_uid, labels=labels
        ),
        "immutable": True,
        "data": {
            _REVISION: pin.revision,
            _CODE_DIGEST: pin.code_digest,
            _LOCATION: pin.location,
            # Only what was set: a default that a later version changes must not look like an edit.
            _SPEC: json.dumps(pin.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)),
            **{code_key(name): text for name, text in pin.code.items()},
        },
    }


def read_run_pin(config_map: Manifest, *, run: int) -> RunPin | None:
    """The pin in a ConfigMap that `run_pin` made; None where that of another version wrote what ours cannot
    read."""
    metadata, data = config_map["metadata"], config_map["data"]
    try:
        spec = StreamJobSpec.parse(json.loads(data[_SPEC]))
    except ValidationError:
        return None
    owner = metadata["ownerReferences"][0]
    prefix = code_key("")
    return RunPin(
        namespace=metadata["namespace"],
        job=owner["name"],
        job_uid=owner["uid"],
        run=run,
        revision=data[_REVISION],
        code_digest=data[_CODE_DIGEST],
        spec=spec,
        location=data[_LOCATION],
        code={key.removeprefix(prefix): text for key, text in data.items() if key.startswith(prefix)},
    )
