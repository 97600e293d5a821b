"""`kubectl streamjob suspend|resume|restart|rollback`: one field or annotation each, and what follows."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import click

from headrace.api.names import ROLLBACK_ANNOTATION
from headrace.cli.cluster import Cluster, ClusterProblem
from headrace.cli.jobs import LiveJob, job
from headrace.cli.options import cluster_options, job_argument
from headrace.cli.waiting import Waited, wait_for
from headrace.kube.resources import STREAM_JOBS

_wait = click.option("--wait", is_flag=True, help="Wait until it is done; exit 1 if it cannot be.")
_timeout = click.option(
    "--timeout", type=click.IntRange(min=1), default=600, show_default=True, help="Seconds to wait."
)


@click.command()
@job_argument
@_wait
@_timeout
@cluster_options()
def suspend(cluster: Cluster, *, name: str, wait: bool, timeout: int) -> None:
    """Drain the driver and keep the checkpoint: the running batch is finished first."""
    found = _patch_spec(cluster, name, {"suspend": True})
    click.echo(f"{found}: asked to suspend. To go on from its checkpoint: kubectl streamjob resume {found}")
    risk = job(cluster, found).status.condition("DataLossRisk")
    if risk is not None and risk.status == "True":
        click.echo(f"  {risk.message}; while it is suspended, nothing is read at all", err=True)
    if wait:
        _wait_until(cluster, found, timeout, lambda one: one.status.state == "Suspended")


@click.command()
@job_argument
@_wait
@_timeout
@cluster_options()
def resume(cluster: Cluster, *, name: str, wait: bool, timeout: int) -> None:
    """Go on from the checkpoint of a suspended job."""
    found = _patch_spec(cluster, name, {"suspend": False})
    click.echo(f"{found}: asked to go on")
    if wait:
        _wait_until(cluster, found, timeout, lambda one: one.status.state in ("Running", "Completed"))


@click.command()
@job_argument
@_wait
@_timeout
@cluster_options()
def restart(cluster: Cluster, *, name: str, wait: bool, timeout: int) -> None:
    """A new run from the same state although nothing changed, for instance to fetch newer code."""
    run = job(cluster, name).status.run
    before = run.number if run is not None else 0
    found = _patch_spec(cluster, name, {"restartNonce": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"})
    click.echo(f"{found}: a new run is asked for. Watch it: kubectl streamjob status {found} --watch")
    if wait:
        _wait_until(cluster, found, timeout, lambda one: _runs_after(one, before))


@click.command()
@job_argument
@click.option("--to-run", "--to", type=click.IntRange(min=1), help="Default: the last stable run.")
@_wait
@_timeout
@cluster_options()
def rollback(cluster: Cluster, *, name: str, to_run: int | None, wait: bool, timeout: int) -> None:
    """Leave the version that runs for the last stable one, or for what an earlier run ran.

    The next edit of the manifest is taken as usual; until then the version that was left is not tried again.
    """
    found = job(cluster, name)
    current = _check_rollback(found, to_run)
    value = str(current) if to_run is None else f"{current} to {to_run}"
    cluster.patch(STREAM_JOBS, found.name, {"metadata": {"annotations": {ROLLBACK_ANNOTATION: value}}})
    target = f"run {to_run}" if to_run is not None else "the last stable one"
    click.echo(f"{found.name}: run {current} is left for the version of {target}")
    click.echo("Put the manifest back as well, in git too: it still asks for what was left")
    if wait:
        # The annotation is no edit: a job that stalled before it says so until the operator has seen it.
        _wait_until(cluster, found.name, timeout, lambda one: _runs_after(one, current), even_stalled=True)


def _check_rollback(found: LiveJob, to_run: int | None) -> int:
    """The run to leave. What is known to lead nowhere is refused here; the operator judges the rest."""
    run, stable = found.status.run, found.status.last_stable
    if run is None:
        raise ClusterProblem(f"{found.name} has no run yet: there is nothing to go back from")
    earlier = [entry.run for entry in found.status.history if entry.outcome != "Refused"]
    if to_run is not None and to_run not in earlier:
        known = ", ".join(map(str, earlier)) or "none"
        raise ClusterProblem(f"--to-run {to_run}: {found.name} knows of no such run before. Known: {known}")
    if to_run is None and stable is None and not earlier:
        raise ClusterProblem(f"run {run.number} is the first of {found.name}: there is nothing to go back to")
    return run.number


def _patch_spec(cluster: Cluster, name: str, change: dict[str, object]) -> str:
    found = job(cluster, name)
    cluster.patch(STREAM_JOBS, found.name, {"spec": change})
    return found.name


def _runs_after(found: LiveJob, before: int) -> bool:
    run = found.status.run
    return run is not None and run.number > before and found.status.state in ("Running", "Completed")


def _wait_until(
    cluster: Cluster, name: str, timeout: int, done: Callable[..., bool], *, even_stalled: bool = False
) -> None:
    waited = wait_for(
        cluster,
        name,
        done,
        timeout_seconds=timeout,
        even_stalled=even_stalled,
        tell=click.echo,
        sleep=time.sleep,
        clock=time.monotonic,
    )
    if waited is not Waited.DONE:
        raise SystemExit(1)
