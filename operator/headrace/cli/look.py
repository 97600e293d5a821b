"""`kubectl streamjob list|status|history|events|logs`: what there is, and how it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from headrace.cli.advice import Health, health
from headrace.cli.cluster import Cluster, ClusterProblem
from headrace.cli.figures import read_figures
from headrace.cli.jobs import events as events_of
from headrace.cli.jobs import job, jobs, savepoints
from headrace.cli.logs import LogRequest, read_log
from headrace.cli.options import cluster_options, job_argument, machine_text, output_option

_LOOK_AGAIN_SECONDS = 2.0


@click.command("list")
@output_option("name")
@cluster_options(lists=True)
def list_jobs(cluster: Cluster, *, output: str | None) -> None:
    """All jobs: how each is, and what is worth a look."""
    found = jobs(cluster)
    if output == "name":
        click.echo("\n".join(one.name for one in found), nl=bool(found))
    elif output is not None:
        kind = {"apiVersion": "headrace.dev/v1alpha1", "kind": "StreamJobList"}
        click.echo(machine_text({**kind, "items": [one.manifest for one in found]}, output))
    elif not found:
        where = "on this cluster" if cluster.everywhere else f"in namespace {cluster.namespace}"
        click.echo(f"There is no StreamJob {where}.")
    else:
        from headrace.cli.views.pages import job_list  # noqa: PLC0415
        from headrace.cli.views.paper import show  # noqa: PLC0415

        show(job_list(found, datetime.now(UTC), everywhere=cluster.everywhere), whole_lines=True)


@click.command()
@job_argument
@click.option("-w", "--watch", is_flag=True, help="Look again every two seconds, until Ctrl-C.")
@output_option()
@cluster_options()
def status(cluster: Cluster, *, name: str, watch: bool, output: str | None) -> None:
    """One screen: is it fine, and if not, what now? Exit 1 if it needs you."""
    if output is not None:
        click.echo(machine_text(job(cluster, name).manifest, output))
        return
    from headrace.cli.views.paper import console, show  # noqa: PLC0415
    from headrace.cli.views.status import status_page  # noqa: PLC0415

    if not watch:
        page = look(cluster, name)
        show(status_page(page))
        raise SystemExit(1 if health(page.job) is Health.TROUBLE else 0)
    from rich.live import Live  # noqa: PLC0415

    paper = console()
    with Live(console=paper, auto_refresh=False, screen=paper.is_terminal) as live:
        try:
            while True:
                live.update(status_page(look(cluster, name)), refresh=True)
                time.sleep(_LOOK_AGAIN_SECONDS)
        except KeyboardInterrupt:
            return


def look(cluster: Cluster, name: str) -> Any:
    """Everything the screen shows. Savepoints are left out where the user may not read them."""
    from headrace.cli.views.status import StatusPage  # noqa: PLC0415

    found = job(cluster, name)
    now, figures = datetime.now(UTC), read_figures(cluster, found.name)
    try:
        taken = savepoints(cluster, found.name)
    except ClusterProblem:
        return StatusPage(job=found, now=now, figures=figures)
    good = [
        (one.status.completed_at, one)
        for one in taken
        if one.status is not None and one.status.completed_at is not None
    ]
    newest = max(good, key=lambda pair: pair[0])[1] if good else None
    return StatusPage(
        job=found,
        now=now,
        savepoint=newest,
        savepoints=len(taken) if taken else None,
        figures=figures,
    )


@click.command()
@job_argument
@output_option()
@cluster_options()
def history(cluster: Cluster, *, name: str, output: str | None) -> None:
    """The runs of the past: what changed, how long each lived, how it ended."""
    found = job(cluster, name)
    if output is not None:
        status = found.status.to_manifest()
        wanted = {key: status[key] for key in ("run", "lastStable", "history") if key in status}
        click.echo(machine_text(wanted, output))
        return
    from headrace.cli.views.pages import history_page  # noqa: PLC0415
    from headrace.cli.views.paper import show  # noqa: PLC0415

    show(history_page(found, datetime.now(UTC)))
    if len(found.status.history) > 0:
        click.echo(f"\nBack to one of them: kubectl streamjob rollback {found.name} --to-run N")


@click.command()
@job_argument
@output_option()
@cluster_options()
def events(cluster: Cluster, *, name: str, output: str | None) -> None:
    """What was decided about a job and what happened to its drivers, newest last."""
    found = events_of(cluster, job(cluster, name))
    if output is not None:
        click.echo(machine_text({"apiVersion": "v1", "kind": "EventList", "items": found}, output))
    elif not found:
        click.echo("There is none: Kubernetes forgets events after an hour or so.")
    else:
        from headrace.cli.views.pages import event_table  # noqa: PLC0415
        from headrace.cli.views.paper import show  # noqa: PLC0415

        show(event_table(found, datetime.now(UTC)))


@click.command()
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, also with the next attempts.")
@click.option("-p", "--previous", is_flag=True, help="Of the attempt that ended last.")
@click.option("--tail", type=click.IntRange(min=0), help="Only so many lines. Default: all of it.")
@click.option("-c", "--container", default="driver", show_default=True)
@cluster_options()
def logs(
    cluster: Cluster, *, name: str, follow: bool, previous: bool, tail: int | None, container: str
) -> None:
    """The log of the driver."""
    if follow and previous:
        raise click.UsageError("--previous has ended: there is nothing to follow")
    request = LogRequest(name=name, previous=previous, follow=follow, tail=tail, container=container)
    write: Callable[[str], None] = click.echo
    try:
        read_log(cluster, request, write=write, say=lambda text: click.echo(text, err=True), sleep=time.sleep)
    except KeyboardInterrupt:
        return
