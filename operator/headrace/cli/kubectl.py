"""`kubectl streamjob`: found by kubectl as kubectl-streamjob on the PATH."""

from __future__ import annotations

import click

from headrace import __version__
from headrace.cli.main import validate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubectl streamjob")
def main() -> None:
    """See and steer StreamJobs."""


main.add_command(validate)
