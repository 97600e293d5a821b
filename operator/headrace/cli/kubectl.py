"""`kubectl streamjob`: found by kubectl as kubectl-streamjob on the PATH."""

from __future__ import annotations

import click

from headrace import __version__
from headrace.cli.explain import explain, simulate
from headrace.cli.look import events, history, list_jobs, logs, status
from headrace.cli.main import validate
from headrace.cli.planning import plan
from headrace.cli.savepoint_objects import savepoint_group
from headrace.cli.steer import restart, resume, rollback, suspend


class InOrder(click.Group):
    """Commands as people meet them, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubectl streamjob")
def main() -> None:
    """See and steer StreamJobs: how they are, what a change would do, back when it was wrong."""


COMMANDS = (
    list_jobs, status, logs, events, history,
    plan, validate,
    explain, simulate,
    suspend, resume, restart, rollback,
    savepoint_group(),
)  # fmt: skip
for command in COMMANDS:
    main.add_command(command)
main.add_command(list_jobs, "get")
