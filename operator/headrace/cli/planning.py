"""`kubectl streamjob plan` and `headrace plan`: what an edit will do, before anybody applies it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from headrace.cli.cluster import Cluster, ClusterProblem
from headrace.cli.manifest import BadManifest, LoadedManifest, load, loads, render_all
from headrace.cli.options import failing_well, machine_text, open_cluster, output_option, where_options

REFUSED = 20
_MANIFEST = click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True)


@click.command()
@click.option("-f", "--filename", "manifests", type=_MANIFEST, multiple=True, required=True)
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare with this file instead of a cluster.",
)
@output_option()
@where_options
def plan(
    *,
    manifests: Sequence[Path],
    against: Path | None,
    output: str | None,
    namespace: str | None,
    context: str | None,
    kubeconfig: Path | None,
) -> None:
    """What applying a manifest would do: nothing is changed.

    Compares with what runs, which is what the run was pinned with, and asks the API server for a dry run.

    Exit codes: 0 nothing changes or it is applied live, 10 it makes a new run, 20 it is refused, 1 the
    cluster could not be asked.
    """
    from headrace.cli.editing import against_cluster, against_file  # noqa: PLC0415 - `--help` stays fast

    loaded = [loaded_jobs(path) for path in manifests]
    with failing_well():
        if against is not None:
            edits = [
                against_file(job, against, now=datetime.now(UTC)) for each in loaded for job in each.jobs
            ]
        else:
            cluster = open_cluster(context=context, kubeconfig=kubeconfig, namespace=namespace)
            edits = [
                against_cluster(_chosen(cluster, job, namespace), job, each, now=datetime.now(UTC))
                for each in loaded
                for job in each.jobs
            ]
    print_plans(edits, output)


def _chosen(cluster: Cluster, job: Any, namespace: str | None) -> Cluster:
    own = job.metadata.namespace
    if namespace is not None and own is not None and own != namespace:
        raise ClusterProblem(
            f"{job.metadata.name}: metadata.namespace is {own}, -n says {namespace}: leave one of them out"
        )
    return cluster.in_namespace(own) if own is not None else cluster


def loaded_jobs(path: Path) -> LoadedManifest:
    found = loads(sys.stdin.read(), name="-") if str(path) == "-" else load(path)
    if isinstance(found, BadManifest):
        click.echo(render_all(found, color=sys.stdout.isatty()))
        raise SystemExit(REFUSED)
    if not found.jobs:
        click.echo(f"there is no StreamJob in {path}")
        raise SystemExit(REFUSED)
    return found


def print_plans(edits: Sequence[Any], output: str | None) -> None:
    """Each of them; the exit code is that of the gravest."""
    from headrace.cli.views.plan import plan_as_json, plan_page  # noqa: PLC0415
    from headrace.core.edit_plan import plan_edit  # noqa: PLC0415

    plans = [plan_edit(edit) for edit in edits]
    if output is not None:
        told = [plan_as_json(one) for one in plans]
        click.echo(machine_text(told[0] if len(told) == 1 else told, output))
    else:
        from headrace.cli.views.paper import show  # noqa: PLC0415

        for number, one in enumerate(plans):
            show(*([""] if number else []), plan_page(one))
    raise SystemExit(max(one.exit_code for one in plans))
