"""The savepoints of a job that `headrace dev` runs, or has run: directories of its state directory.

They are taken while `headrace dev` runs in another terminal, as well as while it does not: a savepoint reads
the job's checkpoints and needs nothing of its driver.
"""

from __future__ import annotations

import importlib.metadata
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headrace.api import StreamJob
from headrace.api.names import as_name
from headrace.cli.local_options import manifest_argument, state_dir_option
from headrace.cli.manifest import load_streamjob
from headrace.cli.savepoint_views import Level, SavedQuery, Savepoint
from headrace.cli.savepoints import SavepointRefused, Target
from headrace.local.dev import home_of
from headrace.local.layout import Layout, read_json
from headrace.local.restore import ask_to_restore, is_running
from headrace.local.start_point import s3_options
from headrace_jobs.store import Store, StoreError, directory_url, open_store
from headrace_jobs.store.savepoints import (
    SAVEPOINTS,
    About,
    Found,
    Manifest,
    Progress,
    Verification,
    delete_savepoint,
    find_savepoints,
    import_savepoint,
    list_savepoints,
    record,
    recorded,
    take_savepoint,
    verify_savepoint,
)

_LONGEST_NAME = 63


@dataclass(frozen=True)
class LocalSavepoints:
    manifest: Path
    job: StreamJob
    layout: Layout

    def create(self, name: str | None, tell: Callable[[str], None]) -> Savepoint:
        kept: dict[str, Any] = read_json(self.layout.streamjob) or {}
        run = ((kept.get("status") or {}).get("run") or {}).get("number")
        if run is None:
            raise SavepointRefused(
                f"{self.job.metadata.name} has not run here yet, so there is nothing to save. Start it: "
                f"headrace dev {self.manifest}"
            )
        now = datetime.now(UTC)
        name = self._checked(name or f"{self.job.metadata.name}-{now:%Y%m%d-%H%M%S}")
        about = About(
            owner=str(uuid.uuid4()),
            job=self._full_name,
            spec_digest=kept["status"]["run"].get("revision"),
            spark_version=_spark_version(),
        )

        def told(progress: Progress) -> None:
            tell(f"copied {progress.objects_done} of {progress.objects} objects")

        with _refusing():
            take_savepoint(
                self._store,
                run=f"{kept['metadata']['uid']}/run-{run}",
                savepoint=f"{SAVEPOINTS}/{name}",
                about=about,
                now=now,
                tell=_now_and_then(told),
            )
        return self.show(name)

    def list(self) -> list[Savepoint]:
        with _refusing():
            found = [_seen(self._store, one, self._full_name) for one in list_savepoints(self._store)]
        return sorted(found, key=lambda one: (one.taken_at or datetime.max.replace(tzinfo=UTC), one.name))

    def list_in(self, place: str) -> tuple[list[Savepoint], str]:
        url = place.rstrip("/") if "://" in place else directory_url(Path(place).absolute())
        with _refusing():
            store = open_store(url, s3_options(self.job.spec))
            found = [_seen(store, one, "") for one in find_savepoints(store)]
        oldest = datetime.min.replace(tzinfo=UTC)
        found.sort(key=lambda one: (one.taken_at or oldest, one.name), reverse=True)
        return found, f"{len(found)} savepoints"

    def show(self, name: str) -> Savepoint:
        found = next((one for one in self.list() if one.name == name), None)
        if found is None:
            there = ", ".join(one.name for one in self.list()) or "there is none"
            raise SavepointRefused(f"{self.job.metadata.name} has no savepoint {name}. Name one of: {there}")
        return found

    def verify(self, name: str, level: Level) -> Savepoint:
        if self.show(name).state == "Unfinished":
            raise SavepointRefused(f"{name} was never finished: there is nothing to check. Delete it")
        path = f"{SAVEPOINTS}/{name}"
        with _refusing():
            found = verify_savepoint(self._store, path, level=level)
            record(self._store, path, found, now=datetime.now(UTC))
        return self.show(name)

    def restore(self, name: str) -> str:
        state = self.show(name).state
        if state != "Ready":
            raise SavepointRefused(f"{name} is {state.lower()}, and cannot be restored. Choose another one")
        if read_json(self.layout.streamjob) is None:
            raise SavepointRefused(
                f"{self.job.metadata.name} has not run here yet. Say spec.startFrom: {{savepoint: {name}}} "
                f"in {self.manifest}, then: headrace dev {self.manifest}"
            )
        ask_to_restore(self.layout, name, now=datetime.now(UTC))
        if is_running(self.layout):
            return f"headrace dev drains {self.job.metadata.name} and starts it from {name} now."
        return f"The next headrace dev {self.manifest} starts it from {name}."

    def delete(self, name: str, tell: Callable[[str], None]) -> str:  # noqa: ARG002 - it is done at once
        self.show(name)
        with _refusing():
            delete_savepoint(self._store, f"{SAVEPOINTS}/{name}", why="headrace savepoint delete")
        return f"{name} is removed."

    def import_from(self, path: str, name: str | None) -> Savepoint:
        url = path.rstrip("/") if "://" in path else directory_url(Path(path).absolute())
        name = self._checked(name or as_name(url.rpartition("/")[2], longest=_LONGEST_NAME))
        above, _, last = url.rpartition("/")
        with _refusing():
            source = open_store(above, s3_options(self.job.spec))
            import_savepoint(source, last, self._store, f"{SAVEPOINTS}/{name}")
        return self.show(name)

    @property
    def _full_name(self) -> str:
        return f"{self._namespace}/{self.job.metadata.name}"

    @property
    def _namespace(self) -> str:
        kept: dict[str, Any] | None = read_json(self.layout.streamjob)
        return kept["metadata"]["namespace"] if kept else self.job.metadata.namespace or "default"

    @property
    def _store(self) -> Store:
        return open_store(directory_url((self.layout.store_root / self._full_name).absolute()))

    def _checked(self, name: str) -> str:
        better = as_name(name, longest=_LONGEST_NAME)
        if better != name:
            raise SavepointRefused(f"'{name}' cannot be the name of a savepoint: try '{better}'")
        return name


def _seen(store: Store, found: Found, job: str) -> Savepoint:
    """`job` is whose it is where no manifest tells."""
    name = found.path.rpartition("/")[2]
    where = f"{store.url}/{found.path}"
    if found.manifest is None:
        damaged = found.problem != "it was never finished"
        state = "Damaged" if damaged else "Unfinished"
        return Savepoint(name=name, job=job, state=state, message=found.problem, path=where)
    return _as_savepoint(name, where, found.manifest, recorded(store, found.path))


def _as_savepoint(name: str, where: str, manifest: Manifest, verified: Verification) -> Savepoint:
    damaged = bool(verified.problems)
    return Savepoint(
        name=name,
        job=manifest.job,
        state="Damaged" if damaged else "Ready",
        message=verified.message if damaged else "",
        path=where,
        cause=manifest.cause,
        taken_at=datetime.fromisoformat(manifest.taken_at),
        run=manifest.run,
        queries=tuple(
            SavedQuery(
                name=query.name,
                batch=query.batch,
                pending=query.pending,
                lineage=query.lineage,
                watermark=_moment(query.watermark_ms),
                offsets=query.offsets,
            )
            for query in manifest.queries
        ),
        objects=len(manifest.objects),
        size_bytes=manifest.size_bytes,
        verified=verified.level,
        verified_message=verified.message,
        spark_version=manifest.spark_version,
    )


def _moment(milliseconds: int | None) -> datetime | None:
    """Spark's watermark is 0 before there is one."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds) if milliseconds else None


def _now_and_then(tell: Callable[[Progress], None], every: int = 100) -> Callable[[Progress], None]:
    def told(progress: Progress) -> None:
        if progress.objects_done % every == 0 or progress.objects_done == progress.objects:
            tell(progress)

    return told


def _spark_version() -> str | None:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return None


class _refusing:  # noqa: N801 - reads as a word
    """What the store cannot do is a sentence for the user already."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, StoreError):
            raise SavepointRefused(str(error)) from error


# ---- the command line


def _parameters(command: Callable[..., None]) -> Callable[..., None]:
    return manifest_argument(state_dir_option(command))


def _open(manifest: Path, state_dir: Path | None) -> LocalSavepoints:
    job = load_streamjob(manifest)
    if isinstance(job, str):
        raise SavepointRefused(job)
    home = home_of(state_dir or manifest.parent / ".headrace", job.metadata.name)
    return LocalSavepoints(manifest, job, Layout(home.absolute()))


LOCAL = Target(
    parameters=_parameters,
    open=_open,
    words=lambda manifest, state_dir: f"{manifest}" + (f" --state-dir {state_dir}" if state_dir else ""),
)
