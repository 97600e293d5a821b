"""What the commands of `kubectl streamjob` have in common: where, how it looks, and how they fail."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from headrace.cli.cluster import Cluster, ClusterProblem
from headrace.kube.errors import ApiError, Conflict, Denied, Invalid

Command = Callable[..., Any]


def cluster_options(*, lists: bool = False) -> Callable[[Command], Command]:
    """--context, --kubeconfig, -n, and -A for commands that list; the command gets `cluster`."""

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def connected(
            *,
            context: str | None,
            kubeconfig: Path | None,
            namespace: str | None,
            all_namespaces: bool = False,
            **given: Any,
        ) -> Any:
            with failing_well():
                cluster = open_cluster(
                    context=context, kubeconfig=kubeconfig, namespace=namespace, everywhere=all_namespaces
                )
                return command(cluster=cluster, **given)

        everywhere = click.option("-A", "--all-namespaces", is_flag=True, help="Of the whole cluster.")
        return where_options(everywhere(connected) if lists else connected)

    return add


def where_options(command: Command) -> Command:
    """Which cluster, which namespace: the same on every command."""
    options = (
        click.option(
            "-n", "--namespace", help="Default: that of the context.", shell_complete=complete_namespaces
        ),
        click.option("--context", help="A context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Default: $KUBECONFIG, then ~/.kube/config, then the pod's ServiceAccount.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def open_cluster(
    *, context: str | None, kubeconfig: Path | None, namespace: str | None, everywhere: bool = False
) -> Cluster:
    """The one place where commands connect: tests put a cluster of their own here."""
    from headrace.cli.connect import connect  # noqa: PLC0415 - `--help` stays fast

    return connect(context=context, kubeconfig=kubeconfig, namespace=namespace, everywhere=everywhere)


def output_option(*more: str) -> Callable[[Command], Command]:
    """-o json|yaml, and `more` forms; the default is for people."""
    return click.option(
        "-o", "--output", type=click.Choice([*more, "json", "yaml"]), help="Default: for people."
    )


class failing_well:  # noqa: N801 - reads as a sentence: with failing_well()
    """What a user can cause ends in a message and exit code 1, never in a trace."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case ClusterProblem():
                fail(str(error))
            case Invalid():
                fail(f"the API server refuses it: {error}")
            case Conflict():
                fail(f"somebody changed it at the same time: {error}. Try again")
            case Denied() | ApiError():
                fail(f"the API server refuses it: {error}")
            case _:
                return


def fail(text: str, code: int = 1) -> None:
    click.echo(text, err=True)
    sys.exit(code)


def machine_text(value: object, output: str) -> str:
    """Objects as programs read them."""
    if output == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    import yaml  # noqa: PLC0415

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110).rstrip()


# ---- completion: never an error, only nothing to offer


def complete_jobs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from headrace.kube.resources import STREAM_JOBS  # noqa: PLC0415

    return _complete(context, lambda cluster: cluster.list(STREAM_JOBS), incomplete)


def complete_namespaces(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from headrace.kube.resources import Resource  # noqa: PLC0415

    namespaces = Resource("/api/v1", "namespaces")
    return _complete(context, lambda cluster: cluster.list(namespaces, everywhere=True), incomplete)


def _complete(
    context: click.Context, read: Callable[[Cluster], list[dict[str, Any]]], incomplete: str
) -> list[str]:
    given: dict[str, Any] = {key: context.params.get(key) for key in ("context", "kubeconfig", "namespace")}
    try:
        found = read(open_cluster(**given))
    except Exception:  # whatever it is: a completion is no place to say it
        return []
    names = (one["metadata"]["name"] for one in found)
    return sorted(name for name in names if name.startswith(incomplete))


job_argument = click.argument("name", metavar="JOB", shell_complete=complete_jobs)
