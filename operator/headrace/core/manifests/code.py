"""Where the parts of an application are inside the driver's container, and which of them must be fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.api import Application
from headrace.core.manifests.places import FETCHED, in_container


@dataclass(frozen=True)
class CodeFile:
    """One file that the manifest names."""

    field: str
    given: str
    place: str | None
    """Below the directory of what is fetched; None for what is in the image."""

    @property
    def path(self) -> str:
        return in_container(self.given) if self.place is None else f"{FETCHED}/{self.place}"


def program_file(application: Application) -> CodeFile | None:
    return _code_file("file", "file", application.file) if application.file is not None else None


def py_files(application: Application) -> list[CodeFile]:
    return _listed("pyFiles", application.py_files)


def jars(application: Application) -> list[CodeFile]:
    return _listed("jars", application.jars)


def fetched_files(application: Application) -> list[CodeFile]:
    return [each for each in _all(application) if each.place is not None]


def _all(application: Application) -> Iterator[CodeFile]:
    program = program_file(application)
    if program is not None:
        yield program
    yield from py_files(application)
    yield from jars(application)


def _listed(name: str, given: tuple[str, ...]) -> list[CodeFile]:
    # A directory each: two files of one name do not meet, and a module keeps the name it is imported by.
    return [_code_file(f"{name}[{n}]", f"{name}/{n}", each) for n, each in enumerate(given)]


def _code_file(field: str, directory: str, given: str) -> CodeFile:
    fetched = given.startswith("s3://")
    return CodeFile(
        field=f"spec.application.{field}",
        given=given,
        place=f"{directory}/{given.rpartition('/')[2]}" if fetched else None,
    )
