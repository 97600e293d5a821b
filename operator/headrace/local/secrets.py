"""Secrets of a cluster, on this machine: one directory for each, one file for each of its keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.core.manifests.kafka_files import NeededFile

VARIABLE = "HEADRACE_SECRETS"


def secrets_home(environ: Mapping[str, str]) -> Path:
    """Outside of any checkout by default: a secret beside the manifest is soon a secret in git."""
    return Path(environ.get(VARIABLE) or Path.home() / ".config/headrace/secrets").absolute()


def local_path(file: NeededFile, environ: Mapping[str, str]) -> Path:
    return secrets_home(environ) / file.name / file.key
