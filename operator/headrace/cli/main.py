"""`headrace`: run, check and begin stream jobs on this machine."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from headrace import __version__
from headrace.cli.local_options import EXISTING_FILE, code_file_option, manifest_argument, state_dir_option
from headrace.cli.plotting import PictureRefused, plot_option, write_picture


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="headrace")
def main() -> None:
    """Spark Structured Streaming as a managed service, on this machine as on a cluster."""


@main.command()
@manifest_argument
@click.option(
    "--fresh", is_flag=True, help="Forget the job's state on this machine and begin anew. Savepoints stay."
)
@click.option(
    "--once", is_flag=True, help="Work off what there is now, then stop; exit 1 on the first failure."
)
@state_dir_option
@code_file_option
@click.option("--ui", is_flag=True, help="Serve the Spark UI (starts a little slower).")
@click.option("--json", "json_lines", is_flag=True, help="One JSON object per line instead of the picture.")
def dev(
    manifest: Path,
    *,
    fresh: bool,
    once: bool,
    state_dir: Path | None,
    code_file: Path | None,
    ui: bool,
    json_lines: bool,
) -> None:
    """Run the job of MANIFEST on this machine.

    Saving the manifest or the code applies the change, as `kubectl apply` does on a cluster. Ctrl-C drains:
    the running batch is finished, the checkpoint stays, and the next start goes on from it.
    """
    from headrace.cli.manifest import load_streamjob  # noqa: PLC0415 - `headrace --help` stays fast
    from headrace.cli.views import choose_view  # noqa: PLC0415
    from headrace.local.conf import fields_without_effect  # noqa: PLC0415
    from headrace.local.dev import DevOptions, DevSession, StateDirInUse  # noqa: PLC0415
    from headrace_jobs.jvm import JavaMissing, find_java  # noqa: PLC0415

    job = load_streamjob(manifest, color=sys.stderr.isatty())
    if isinstance(job, str):
        _fail(job)
    try:
        find_java()
    except JavaMissing as missing:
        _fail(str(missing))
    options = DevOptions(
        manifest=manifest,
        state_dir=state_dir or manifest.parent / ".headrace",
        code_file=code_file,
        fresh=fresh,
        once=once,
        ui=ui,
    )
    if (idle := fields_without_effect(job.spec)) and not json_lines:
        click.echo(
            f"Without effect on one machine: {', '.join(idle)}. Checkpoints are kept in {options.state_dir}."
        )
    try:
        session = DevSession(
            options, job, lambda: load_streamjob(manifest), choose_view(json_lines=json_lines)
        )
    except StateDirInUse as in_use:
        _fail(str(in_use))
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, lambda *_: session.stop())
    sys.exit(session.run())


@main.command()
@click.option("-f", "--filename", "manifests", type=EXISTING_FILE, multiple=True, required=True)
def validate(manifests: tuple[Path, ...]) -> None:
    """Check manifests: every problem with its line and a fix. Exit 1 if there is any."""
    from headrace.cli.manifest import check_file  # noqa: PLC0415

    results = [check_file(path, color=sys.stdout.isatty()) for path in manifests]
    for result in results:
        click.echo(result.text)
    sys.exit(0 if all(result.good for result in results) else 1)


class _SavepointGroup(click.Group):
    """Loaded when it is asked for: `headrace --help` stays fast."""

    def _loaded(self) -> click.Group:
        from headrace.cli.local_savepoints import LOCAL  # noqa: PLC0415
        from headrace.cli.savepoints import savepoint_commands  # noqa: PLC0415

        return savepoint_commands("headrace", LOCAL)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._loaded().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._loaded().get_command(ctx, cmd_name)


@main.group(cls=_SavepointGroup)
def savepoint() -> None:
    """Take, check, restore and remove savepoints of a job of this machine."""


@main.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", help="The job's name. Default: the directory's.")
def init(directory: Path, *, name: str | None) -> None:
    """Write a small working project into DIRECTORY: manifest, PySpark file, test, Dockerfile."""
    from headrace.cli.init import ProjectRefused, write_project  # noqa: PLC0415

    try:
        written = write_project(directory, name or directory.resolve().name)
    except ProjectRefused as refused:
        _fail(str(refused))
    for path in written:
        click.echo(f"  wrote {path}")
    click.echo("\nNext:")
    click.echo(f"  cd {directory}")
    click.echo("  headrace dev job.yaml     # run it here")
    click.echo("  pytest                    # test it")


@main.command()
@click.argument("trace", type=EXISTING_FILE)
@click.option("--max", "max_executors", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--min", "min_executors", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--lag-objective", default="60s", show_default=True, help="As spec.autoscaling.lagObjective.")
@click.option("--partitions", type=click.IntRange(1, 10_000), default=48, show_default=True)
@click.option("--cores", type=click.IntRange(1, 64), default=2, show_default=True, help="Of one executor.")
@click.option(
    "--rows-per-executor",
    type=click.FloatRange(min=0, min_open=True),
    help="Rows per second that one executor can do. Default: so that the peak takes 70 % of --max.",
)
@click.option("--seed", type=int, default=1, show_default=True)
@plot_option(default="beside the trace")
def simulate(
    trace: Path,
    *,
    max_executors: int,
    min_executors: int,
    lag_objective: str,
    partitions: int,
    cores: int,
    rows_per_executor: float | None,
    seed: int,
    plot: Path | None,
) -> None:
    """What the autoscaler would do with the load in TRACE, a CSV file with seconds and rows per second.

    The job is simulated; the decisions are those of the policy that scales real jobs.
    """
    from headrace.api.quantities import DURATION, Duration  # noqa: PLC0415
    from headrace.cli.simulate import Options  # noqa: PLC0415
    from headrace.cli.simulate import simulate as play  # noqa: PLC0415
    from headrace.simulate.traces import BadTrace, read_trace, short_enough  # noqa: PLC0415

    if min_executors > max_executors:
        _fail(f"--min {min_executors} is above --max {max_executors}: lower one or raise the other")
    try:
        objective = Duration(DURATION.check(lag_objective)).seconds
        options = Options(
            trace=short_enough(read_trace(trace)),
            max_executors=max_executors,
            min_executors=min_executors,
            objective_seconds=objective,
            partitions=partitions,
            cores=cores,
            per_executor=rows_per_executor,
            seed=seed,
        )
    except BadTrace as bad:
        _fail(str(bad))
    except ValueError as bad:
        _fail(f"--lag-objective {lag_objective}: {bad}")
    if (days := options.trace.length_seconds / 86_400) > 3:
        click.echo(f"{days:.0f} days are simulated second by second: this takes some minutes", err=True)
    simulated = play(options)
    click.echo(simulated.text)
    path = plot or trace.with_suffix(".svg")
    try:
        write_picture(simulated.picture, path)
    except PictureRefused as refused:
        _fail(str(refused))
    click.echo(f"\n  wrote {path}")


@main.command()
@manifest_argument
@state_dir_option
@code_file_option
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Default: for people.")
def plan(manifest: Path, *, state_dir: Path | None, code_file: Path | None, output: str | None) -> None:
    """What saving MANIFEST and its code would do to the job of `headrace dev`: nothing is changed.

    Exit codes: 0 nothing changes or it is applied live, 10 it makes a new run, 20 it is refused.
    """
    from datetime import UTC, datetime  # noqa: PLC0415

    from headrace.cli.editing import against_local  # noqa: PLC0415
    from headrace.cli.planning import loaded_jobs, print_plans  # noqa: PLC0415

    edits = [
        against_local(
            job,
            state_dir or manifest.parent / ".headrace",
            manifest_dir=manifest.parent,
            code_file=code_file,
            now=datetime.now(UTC),
        )
        for job in loaded_jobs(manifest).jobs
    ]
    print_plans(edits, output)


def _fail(text: str) -> NoReturn:
    click.echo(text, err=True)
    sys.exit(2)
