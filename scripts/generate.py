#!/usr/bin/env python3
"""Writes what is made from the code: CRDs, reference pages, the editor schema, the alerts and their runbook.

scripts/generate.py            write the files
scripts/generate.py --check    name the files that are stale, and fail
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

from headrace.api.crd import KINDS, custom_resource_definition
from headrace.api.reference import api_page, editor_schema, sparkconf_page
from headrace.cli.reference import cli_page
from headrace.runtime.alert_pages import metrics_page, rules, runbook_page

ROOT = Path(__file__).resolve().parent.parent
_HEADER = "# Generated from operator/headrace/api by `make generate`. Edit the models, not this file.\n"

_ALERTS_HEADER = (
    "# Generated from operator/headrace/runtime/alerts.py by `make generate`. Edit that file, not this one.\n"
    "# As Prometheus reads them; the chart wraps them into a PrometheusRule.\n"
)


def generated_files() -> dict[str, str]:
    """Every generated file: its path below the root of the project, and its text."""
    crds = {f"crds/{kind.plural}.yaml": _HEADER + _yaml(custom_resource_definition(kind)) for kind in KINDS}
    return crds | {
        "docs/reference/api.md": api_page(),
        "docs/reference/sparkconf.md": sparkconf_page(),
        "docs/reference/streamjob.schema.json": json.dumps(editor_schema(), indent=2, ensure_ascii=False)
        + "\n",
        "docs/reference/cli.md": cli_page(),
        "docs/reference/metrics.md": metrics_page(),
        "docs/runbooks/index.md": runbook_page(),
        "charts/headrace/files/alerts.yaml": _ALERTS_HEADER + _yaml(rules()),
    }


def stale_files(root: Path = ROOT) -> dict[str, str]:
    """The generated files whose copy is not what the code says now, with the text they should have."""
    return {
        name: text
        for name, text in generated_files().items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    }


def write_files(root: Path = ROOT) -> list[str]:
    stale = stale_files(root)
    for name, text in stale.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(stale)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write what is made from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    if parser.parse_args().check:
        stale = stale_files()
        for name in stale:
            print(f"{name} is stale: run `make generate` and commit it", file=sys.stderr)
        return 1 if stale else 0
    for name in write_files():
        print(f"wrote {name}")
    return 0


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their key, and nothing is an alias: people read these files."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _yaml(document: object) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


if __name__ == "__main__":
    sys.exit(main())
