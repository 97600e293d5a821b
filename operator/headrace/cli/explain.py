"""`kubectl streamjob explain|simulate`: why the autoscaler did what it did, and what it would do otherwise.

Its ring is asked of the driver's agent, by a command in the driver's pod: see docs/adr/0009.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from headrace.cli.cluster import Cluster, ClusterProblem
from headrace.cli.jobs import LiveJob, driver_pod_name, job
from headrace.cli.options import cluster_options, job_argument, machine_text, output_option
from headrace.cli.plotting import PictureRefused, plot_option, write_picture
from headrace.cli.ring import Ring, explained
from headrace.core.autoscale.words import duration
from headrace.core.manifests.places import RUN_FILE, RUN_FILES
from headrace.kube.errors import NotFound
from headrace.kube.pods import DRIVER_CONTAINER

_ASK = ["python3", "-m", "headrace_jobs.harness.ask", f"--run-file={RUN_FILES}/{RUN_FILE}", "/v1/scaling"]


@click.command()
@job_argument
@click.option("--lines", type=click.IntRange(1, 200), default=10, show_default=True, help="Decisions.")
@output_option()
@cluster_options()
def explain(cluster: Cluster, *, name: str, lines: int, output: str | None) -> None:
    """Why there are as many executors: the last decisions with their numbers, and what was learned."""
    found = job(cluster, name)
    content = ring_of(cluster, found)
    if output is not None:
        click.echo(machine_text(content, output))
        return
    click.echo(_head(found))
    click.echo()
    click.echo(explained(_parsed(content), now=datetime.now(UTC), lines=lines))


@click.command()
@job_argument
@click.option("--max", "max_executors", type=click.IntRange(1, 1000), help="Default: autoscaling.max.")
@click.option("--min", "min_executors", type=click.IntRange(1, 1000), help="Default: autoscaling.min.")
@click.option("--lag-objective", help="Default: autoscaling.lagObjective.")
@click.option("--seed", type=int, default=1, show_default=True)
@plot_option(default="<job>-simulated.svg")
@cluster_options()
def simulate(
    cluster: Cluster,
    *,
    name: str,
    max_executors: int | None,
    min_executors: int | None,
    lag_objective: str | None,
    seed: int,
    plot: Path | None,
) -> None:
    """What the autoscaler would have done with the job's own load under other limits.

    The load is the one of the last two days, as the job's driver has kept it. What an executor can do, what a
    batch costs at the least and how long executors take to start is what was learned; trigger, partitions and
    retention are the job's. The rest is simulated: trust comparisons, not absolute numbers.
    """
    from headrace.cli.simulate import simulate as play  # noqa: PLC0415

    found = job(cluster, name)
    options = _options(
        found,
        _parsed(ring_of(cluster, found)),
        max_executors=max_executors,
        min_executors=min_executors,
        lag_objective=lag_objective,
        seed=seed,
    )
    simulated = play(options)
    click.echo(simulated.text)
    path = plot or Path(f"{found.name}-simulated.svg")
    try:
        write_picture(simulated.picture, path)
    except PictureRefused as refused:
        raise ClusterProblem(str(refused)) from None
    click.echo(f"\n  wrote {path}")


def ring_of(cluster: Cluster, found: LiveJob) -> dict[str, Any]:
    """Asked in the driver's pod, so that nobody needs its token."""
    run = found.status.run
    attempt = run.attempt if run is not None else None
    if run is None or attempt is None or attempt.state != "Started":
        last = found.status.executors.reason
        raise ClusterProblem(
            f"{found.name} has no running driver, and its decisions are kept with it"
            + (f". The last one: {last}" if last else "")
        )
    pod = driver_pod_name(found, (run.number, attempt.number))
    try:
        ran = cluster.run(pod, DRIVER_CONTAINER, _ASK, namespace=found.namespace)
    except NotFound:
        raise ClusterProblem(f"the driver pod {pod} is gone: try again in a moment") from None
    if ran.code != 0:
        raise ClusterProblem(f"the driver's agent in {pod} does not tell: {ran.errors.strip()[:500]}")
    try:
        return json.loads(ran.output)
    except ValueError:
        raise ClusterProblem(f"the driver's agent in {pod} says something else than decisions") from None


def _parsed(content: dict[str, Any]) -> Ring:
    try:
        return Ring.of(content)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ClusterProblem("the decisions are of a version that this plugin does not know") from None


def _head(found: LiveJob) -> str:
    status, spec = found.status.executors, found.spec
    scaling = spec.autoscaling if spec is not None else None
    there = f"{found.name}: {status.ready} of {status.target if status.target is not None else '?'} executors"
    if scaling is None:
        return f"{there}, no autoscaling"
    return (
        f"{there}, autoscaling {scaling.mode} from {scaling.min} to {scaling.max}, "
        f"objective {duration(scaling.lag_objective.seconds)}"
    )


def _options(
    found: LiveJob,
    ring: Ring,
    *,
    max_executors: int | None,
    min_executors: int | None,
    lag_objective: str | None,
    seed: int,
) -> Any:
    from headrace.api.quantities import DURATION, Duration  # noqa: PLC0415
    from headrace.cli.simulate import Options  # noqa: PLC0415

    spec = found.spec
    scaling = spec.autoscaling if spec is not None else None
    trace = ring.trace(found.name)
    if trace is None:
        raise ClusterProblem(
            f"{found.name} has less than ten minutes of history: let it run for a while, or try "
            "`headrace simulate` with a trace of your own"
        )
    if max(trace.rates) <= 0:
        raise ClusterProblem(
            f"{found.name} has had no rows for as long as its history goes back: no load to replay"
        )
    highest = max_executors or (scaling.max if scaling is not None else None)
    if highest is None:
        raise ClusterProblem(f"{found.name} has no autoscaling: say --max")
    lowest = min_executors or (scaling.min if scaling is not None else 1)
    if lowest > highest:
        raise ClusterProblem(f"--min {lowest} is above --max {highest}: lower one or raise the other")
    try:
        objective = (
            Duration(DURATION.check(lag_objective)).seconds
            if lag_objective is not None
            else scaling.lag_objective.seconds
            if scaling is not None
            else 60.0
        )
    except ValueError as bad:
        raise ClusterProblem(f"--lag-objective {lag_objective}: {bad}") from None
    cores = spec.executors.cores if spec is not None else 1
    return Options(
        trace=trace,
        max_executors=highest,
        min_executors=lowest,
        objective_seconds=objective,
        # A few tasks for each core: nobody waits for the last one.
        partitions=ring.partitions or 3 * highest * cores,
        cores=cores,
        per_executor=ring.rows_per_executor,
        seed=seed,
        job=ring.job,
    )
