"""The verbs on savepoints, the same on a laptop and on a cluster: `… savepoint create|list|show|…`.

What they work on is a `SavepointBackend`: directories of this machine (`headrace savepoint list JOB.yaml`) or
the StreamSavepoints of a namespace (`kubectl streamjob savepoint list JOB`).
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import click

from headrace.cli.savepoint_views import Level, Savepoint, as_json, details, places, table


class SavepointRefused(Exception):
    """What was asked cannot be done; the message is a sentence for the user, with the way out."""


class SavepointBackend(Protocol):
    """The savepoints of one job. Each method raises SavepointRefused for what cannot be done."""

    def create(self, name: str | None, tell: Callable[[str], None]) -> Savepoint:
        """Takes one and waits for it; `tell` hears how far it is. None: a name is made up."""
        ...

    def list(self) -> Sequence[Savepoint]:
        """All of this job, unfinished and damaged ones too, oldest first."""
        ...

    def list_in(self, place: str) -> tuple[Sequence[Savepoint], str]:
        """All that lie below a place, whoever took them, newest first; and in words how many there are."""
        ...

    def show(self, name: str) -> Savepoint: ...

    def verify(self, name: str, level: Level) -> Savepoint:
        """Checks it up to the level; what was found is in `verified` and `verified_message`."""
        ...

    def restore(self, name: str) -> str:
        """Has the job start a new run from it; says in a sentence what happens now."""
        ...

    def delete(self, name: str, tell: Callable[[str], None]) -> str:
        """Removes it; says in a sentence whether it is gone. `tell` hears what it waits for."""
        ...

    def import_from(self, path: str, name: str | None) -> Savepoint:
        """Makes a savepoint that lies elsewhere one of this job's."""
        ...


@dataclass(frozen=True, kw_only=True)
class Target:
    """How a command line names the job whose savepoints are meant."""

    parameters: Callable[[Callable[..., None]], Callable[..., None]]
    """Adds click's arguments and options for it to a command."""
    open: Callable[..., SavepointBackend]
    """Called with the values of those parameters."""
    words: Callable[..., str]
    """The same: how a command that is suggested names the job."""


Suggest = Callable[..., str]
"""A command to try next: the verb, then what comes after the job."""


def savepoint_commands(program: str, target: Target) -> click.Group:
    """The group `savepoint`; `program` is what comes before it: `headrace`, `kubectl streamjob`."""

    @click.group("savepoint")
    def savepoint() -> None:
        """Take, check, restore and remove savepoints of a job."""

    for name, verb in _VERBS.items():
        savepoint.command(name)(target.parameters(_command(verb, program, target)))
    return savepoint


def _command(verb: Callable[..., int], program: str, target: Target) -> Callable[..., None]:
    """A verb is `work(backend, suggest, **its own parameters) -> exit code`; the rest names the job."""
    parameters: list[click.Parameter] = list(getattr(verb, "__click_params__", ()))
    own = {parameter.name for parameter in parameters}

    @functools.wraps(verb)
    def command(**given: Any) -> None:
        which = {key: value for key, value in given.items() if key not in own}
        words = target.words(**which)

        def suggest(name: str, *rest: str) -> str:
            return " ".join((program, "savepoint", name, words, *rest))

        try:
            code = verb(target.open(**which), suggest, **{key: given[key] for key in given if key in own})
        except SavepointRefused as refused:
            click.echo(str(refused), err=True)
            code = 2
        sys.exit(code)

    # A list of its own: those that name the job are added to it, and others may name it otherwise.
    vars(command)["__click_params__"] = parameters
    return command


_output = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)
_name = click.argument("name")


@click.argument("name", required=False)
@_output
def _create(backend: SavepointBackend, suggest: Suggest, *, name: str | None, output: str) -> int:
    """Take one now, and wait for it. The job goes on meanwhile; it need not run."""
    tell = (lambda _: None) if output == "json" else (lambda text: click.echo(f"  {text}"))
    made = backend.create(name, tell)
    return _shown(made, output, suggest("verify", made.name, "--level State"))


@click.option(
    "--in",
    "place",
    metavar="URL",
    help="Those that lie below this place, such as s3://acme/checkpoints, also of jobs that are gone.",
)
@_output
def _list(backend: SavepointBackend, suggest: Suggest, *, place: str | None, output: str) -> int:
    """All of the job, oldest first; or what lies in a store, newest first, looked at as the job would."""
    if place is not None:
        return _list_in(backend, suggest, place, output)
    found = backend.list()
    if output == "json":
        click.echo(json.dumps([as_json(one) for one in found], indent=1))
    elif found:
        click.echo(table(found))
        good = [one.name for one in found if one.state == "Ready"]
        _next(suggest("show", good[-1]) if good else suggest("create"))
    else:
        click.echo("There is none.")
        _next(suggest("create"))
    return 0


def _list_in(backend: SavepointBackend, suggest: Suggest, place: str, output: str) -> int:
    found, in_words = backend.list_in(place)
    if output == "json":
        click.echo(json.dumps([as_json(one) for one in found], indent=1))
        return 0
    if found:
        click.echo(places(found))
    click.echo(in_words)
    good = [one.path for one in found if one.state == "Ready" and one.path]
    if good:
        _next(suggest("import", good[0]))
    return 0


@_name
@_output
def _show(backend: SavepointBackend, suggest: Suggest, *, name: str, output: str) -> int:
    """Everything about one: its queries with batch and offsets, its size, how far it was checked."""
    return _shown(backend.show(name), output, suggest("restore", name))


@_name
@click.option("--level", type=click.Choice(["Objects", "State"]), default="State", show_default=True)
@_output
def _verify(backend: SavepointBackend, suggest: Suggest, *, name: str, level: Level, output: str) -> int:
    """Check now that it is whole, whatever was known. Exit 1 if it is not, 2 if nobody could look."""
    found = backend.verify(name, level)
    good = _LEVELS.index(found.verified) >= _LEVELS.index(level)
    if output == "json":
        click.echo(json.dumps(as_json(found), indent=1))
    else:
        click.echo(f"{name}: {found.verified_message}")
        _next(suggest("restore", name) if good else suggest("list"))
    return 0 if good else 1


@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
def _restore(backend: SavepointBackend, suggest: Suggest, *, name: str, yes: bool) -> int:
    """Go back: the job starts a new run from it. What it did since is done again, under a new lineage."""
    if not yes:
        click.confirm(f"Start the job from {name}? What it has done since is done again", abort=True)
    click.echo(backend.restore(name))
    _next(suggest("list"))
    return 0


@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
def _delete(backend: SavepointBackend, suggest: Suggest, *, name: str, yes: bool) -> int:
    """Remove one, with its copy of the state."""
    if not yes:
        click.confirm(f"Remove {name} for good?", abort=True)
    click.echo(backend.delete(name, lambda text: click.echo(f"  {text}")))
    _next(suggest("list"))
    return 0


@click.argument("path")
@click.argument("name", required=False)
@_output
def _import(backend: SavepointBackend, suggest: Suggest, *, path: str, name: str | None, output: str) -> int:
    """Make the savepoint at PATH one of this job's, also where no cluster knows of it any more."""
    made = backend.import_from(path, name)
    return _shown(made, output, suggest("restore", made.name))


_VERBS = {
    "create": _create,
    "list": _list,
    "show": _show,
    "verify": _verify,
    "restore": _restore,
    "delete": _delete,
    "import": _import,
}
_LEVELS: tuple[Level, ...] = ("None", "Objects", "State", "Restore")


def _shown(savepoint: Savepoint, output: str, following: str) -> int:
    if output == "json":
        click.echo(json.dumps(as_json(savepoint), indent=1))
        return 0
    click.echo(details(savepoint))
    if savepoint.state == "Ready":
        _next(following)
    return 0


def _next(command: str) -> None:
    click.echo(f"\nNext: {command}")
