"""What commands of `headrace` on this machine have in common."""

from __future__ import annotations

from pathlib import Path

import click

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

manifest_argument = click.argument("manifest", type=EXISTING_FILE)
state_dir_option = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Default: .headrace beside the manifest.",
)
code_file_option = click.option(
    "--file", "code_file", type=EXISTING_FILE, help="Run this file instead of spec.application.file."
)
