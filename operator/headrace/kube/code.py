"""The application's code, as far as the operator can see it.

What lies in an image or in S3 is named by the spec, and a new version of it is an edit of the spec (image,
file, restartNonce). Only a ConfigMap can change under its name.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.api import Application
from headrace.api.application import ConfigMapFile
from headrace.core.model import Code, CodeProblem
from headrace.kube.client import Api, Object
from headrace.kube.errors import NotFound
from headrace.kube.resources import CONFIG_MAPS

NAMED_BY_SPEC = Code("spec")


@dataclass(frozen=True)
class Sources:
    code: Code | CodeProblem
    files: Mapping[str, str] = field(default_factory=dict)
    """By name; to be kept with the run."""


async def look_at_code(api: Api, namespace: str, application: Application) -> Sources:
    wanted = application.config_map
    if wanted is None:
        return Sources(NAMED_BY_SPEC)
    try:
        found = await api.get(CONFIG_MAPS, namespace, wanted.name)
    except NotFound:
        found = None
    return code_in(found, wanted, namespace)


def code_in(config_map: Object | None, wanted: ConfigMapFile, namespace: str) -> Sources:
    """The code that an application names, in the ConfigMap as it was found; None where there is none."""
    where = "spec.application.configMap"
    if config_map is None:
        return Sources(CodeProblem(f"{where}: there is no ConfigMap {wanted.name} in namespace {namespace}"))
    text = (config_map.get("data") or {}).get(wanted.key)
    if text is None:
        keys = ", ".join(sorted(config_map.get("data") or {})) or "none"
        return Sources(CodeProblem(f"{where}: {wanted.name} has no key {wanted.key}; its keys: {keys}"))
    if (problem := _syntax_problem(wanted.key, text)) is not None:
        return Sources(CodeProblem(problem))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Sources(Code(digest), {wanted.key: text})


def _syntax_problem(name: str, text: str) -> str | None:
    """Known here, it need not cost a driver its life. A newer Python than ours may know more: no matter."""
    try:
        ast.parse(text, filename=name)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        return f"{name}{line}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{name}: {error or type(error).__name__}"
    return None
