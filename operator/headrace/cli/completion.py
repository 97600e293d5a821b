"""`kubectl_complete-streamjob`: kubectl calls it with the words so far, and shows what it prints.

One candidate per line with its help after a tab, then a directive in the way of cobra: `:4` is no files, `:0`
files as well.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from click.shell_completion import ShellComplete

NO_FILES, FILES = ":4", ":0"


def candidates(words: Sequence[str]) -> list[str]:
    from headrace.cli.kubectl import main as plugin  # noqa: PLC0415 - the whole program

    *before, incomplete = words or [""]
    found = ShellComplete(plugin, {}, "kubectl-streamjob", "").get_completions(before, incomplete)
    lines = [f"{one.value}\t{one.help}" if one.help else one.value for one in found if one.type == "plain"]
    wants_files = any(one.type in ("file", "dir") for one in found)
    return [*lines, FILES if wants_files else NO_FILES]


def main() -> None:
    click.echo("\n".join(candidates(sys.argv[1:])))
