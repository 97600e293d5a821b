"""`headrace init`: a small working project that passes its own test."""

from __future__ import annotations

import string
from importlib import resources
from pathlib import Path

from headrace import __version__
from headrace.api.names import JOB_NAME, JOB_NAME_MAX, as_name

# The template and the file it becomes.
FILES = {
    "job.yaml.tmpl": "job.yaml",
    "job.py.tmpl": "job.py",
    "test_job.py.tmpl": "test_job.py",
    "Dockerfile.tmpl": "Dockerfile",
    "gitignore.tmpl": ".gitignore",
}


class ProjectRefused(Exception):
    """The project cannot be written as asked; the message says what to do."""


def write_project(directory: Path, name: str) -> list[Path]:
    if JOB_NAME.problem_with(name) is not None:
        better = as_name(name, longest=JOB_NAME_MAX)
        raise ProjectRefused(f"{name!r} cannot be a job's name: headrace init {directory} --name {better}")
    targets = {template: directory / file for template, file in FILES.items()}
    taken = [str(path) for path in targets.values() if path.exists()]
    if taken:
        raise ProjectRefused(f"{', '.join(taken)} exists; nothing was written. Name another directory")
    directory.mkdir(parents=True, exist_ok=True)
    templates = resources.files("headrace.cli") / "templates"
    for template, path in targets.items():
        text = string.Template((templates / template).read_text()).substitute(name=name, version=__version__)
        path.write_text(text)
    return list(targets.values())
