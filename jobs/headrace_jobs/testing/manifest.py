"""What a test needs of a manifest: the application and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace_jobs.harness.runfile import Application


class ManifestProblem(Exception):
    """The manifest cannot be tested; the message says why."""


@dataclass(frozen=True)
class TestedJob:
    name: str
    namespace: str
    application: Application
    spark_conf: dict[str, str]
    home: Path

    __test__ = False  # not a test class, whatever pytest thinks of its name


def read_manifest(path: Path, args: tuple[str, ...] | None = None) -> TestedJob:
    """A manifest, or a PySpark file by itself. `args` replaces the manifest's."""
    if path.suffix == ".py":
        application = Application(str(path.resolve()), None, args or (), ())
        return TestedJob(path.stem, "default", application, {}, path.resolve().parent)
    manifest = _stream_job(path)
    spec = manifest.get("spec") or {}
    metadata = manifest.get("metadata") or {}
    home = path.resolve().parent
    return TestedJob(
        name=metadata.get("name", path.stem),
        namespace=metadata.get("namespace", "default"),
        application=_application(spec.get("application") or {}, home, path, args),
        spark_conf={key: _text(value) for key, value in (spec.get("sparkConf") or {}).items()},
        home=home,
    )


def _stream_job(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - the job's side needs no YAML, only its tests do

    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise ManifestProblem(f"{path}: {error}") from None
    jobs = [
        document
        for document in documents
        if isinstance(document, dict) and document.get("kind") == "StreamJob"
    ]
    if len(jobs) != 1:
        raise ManifestProblem(f"{path} must hold one StreamJob, and holds {len(jobs)}")
    return jobs[0]


def _application(given: dict[str, Any], home: Path, path: Path, args: tuple[str, ...] | None) -> Application:
    file, module = given.get("file"), given.get("module")
    if file is not None and "://" in file:
        raise ManifestProblem(
            f"{path}: spec.application.file is {file}; give the test a local copy: run('job.py')"
        )
    if (file is None) == (module is None):
        raise ManifestProblem(f"{path}: spec.application needs either file or module to be tested")
    return Application(
        file=str(home / file) if file is not None else None,
        module=module,
        args=args if args is not None else tuple(_text(arg) for arg in given.get("args") or ()),
        py_files=tuple(str(home / entry) for entry in given.get("pyFiles") or ()),
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
