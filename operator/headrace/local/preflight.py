"""What a manifest takes from elsewhere on a cluster and must find on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from headrace.api import StreamJobSpec
from headrace.core.manifests.kafka_files import needed_files
from headrace.local.secrets import VARIABLE, local_path


def missing(spec: StreamJobSpec, *, base: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Each thing that is not here, with the way to get it."""
    for jar in spec.application.jars:
        if "://" in jar:
            yield f"spec.application.jars: {jar} is not on this machine; name a jar beside the manifest"
        elif not (base / jar).is_file():
            yield f"spec.application.jars: there is no {jar} beside the manifest"
    for line in spec.application.requirements:
        if (why := _not_installed(line)) is not None:
            yield f"spec.application.requirements: {why}. Install it: pip install '{line}'"
    for variable in spec.driver.env:
        if variable.value_from is not None and variable.name not in environ:
            yield (
                f"spec.driver.env: {variable.name} comes from the cluster. "
                f"Give it a value here: export {variable.name}=…"
            )
    for file in needed_files(spec.kafka).all():
        if not (path := local_path(file, environ)).is_file():
            yield (
                f"{file.field}: the key {file.key} of the {file.kind} {file.name} is on the cluster. "
                f"Put it into {path} here (or name another directory of secrets in {VARIABLE})"
            )


def _not_installed(line: str) -> str | None:
    requirement = Requirement(line)
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} {version} is installed, and {line} is asked for"
    return None
