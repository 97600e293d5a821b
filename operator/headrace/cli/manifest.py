"""Reading manifests: YAML files in, StreamJobs out, or every problem with its line and a fix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.api import GROUP, StreamJob, StreamSavepoint
from headrace.api.edits import Fix, SetValue, value_at
from headrace.api.guesses import nearest_name
from headrace.api.problems import MODELS, Problem, find_faults, model_for, parse_or_explain
from headrace.api.secrets import is_secret
from headrace.cli.render import PlacedProblem, masked, masked_by_words, position_of, render
from headrace.cli.yamlfixes import Span, TextEdit, TextFix, append_example, start_anew
from headrace.cli.yamltext import Document, TextProblem, read_documents, scan
from headrace.core.schedule import nearest_zone, zone_problem


@dataclass(frozen=True)
class LoadedManifest:
    """A good file: its objects, and the documents of other kinds that stand beside them."""

    name: str
    jobs: tuple[StreamJob, ...]
    savepoints: tuple[StreamSavepoint, ...]
    others: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class BadManifest:
    """A file with problems. `text` is safe to show: secrets in it are masked, nothing has moved."""

    name: str
    text: str
    problems: tuple[PlacedProblem, ...]


@dataclass(frozen=True)
class CheckResult:
    good: bool
    text: str


def load(source: Path, *, one_job: bool = False) -> LoadedManifest | BadManifest:
    """A manifest file. With `one_job` it must hold exactly one StreamJob."""
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        return _unreadable(source, error)
    return loads(text, name=str(source), one_job=one_job)


def loads(text: str, *, name: str = "manifest.yaml", one_job: bool = False) -> LoadedManifest | BadManifest:
    """The same for a text."""
    read = read_documents(text, badness=_badness)
    mistakes = [each for each in read if isinstance(each, TextProblem)]
    if mistakes:
        problems = [
            _placed(Span(each.span.start, each.span.end), text, each.message, each.fix) for each in mistakes
        ]
        return BadManifest(name, masked_by_words(text), tuple(problems))
    documents = [each for each in read if isinstance(each, Document) and each.data is not None]
    return _judged(text, name, documents, one_job=one_job)


def load_streamjob(path: Path, *, color: bool = False) -> StreamJob | str:
    """The one StreamJob of a file, or its problems as a text for the user."""
    loaded = load(path, one_job=True)
    return loaded.jobs[0] if isinstance(loaded, LoadedManifest) else render_all(loaded, color=color)


def check_file(path: Path, *, color: bool = False) -> CheckResult:
    """For `headrace validate`: what is in a file, or what is wrong with it."""
    loaded = load(path)
    if isinstance(loaded, BadManifest):
        return CheckResult(good=False, text=render_all(loaded, color=color))
    objects = [f"{each.kind} {each.metadata.name}" for each in (*loaded.jobs, *loaded.savepoints)]
    return CheckResult(good=True, text=f"{path}: {', '.join(objects)}: valid")


def render_all(bad: BadManifest, *, color: bool = False) -> str:
    """All problems, one below the other."""
    return "\n\n".join(render(each, bad.text, name=bad.name, color=color) for each in bad.problems)


# ---- judging the documents


def _judged(
    text: str, name: str, documents: list[Document], *, one_job: bool
) -> LoadedManifest | BadManifest:
    if not documents:
        return BadManifest(
            name, text, (_placed(Span(0, 0), text, "there is nothing in this file", start_anew(text)),)
        )
    ours = [document for document in documents if _is_ours(document.data)]
    others = [document.data for document in documents if not _is_ours(document.data)]
    jobs: list[StreamJob] = []
    savepoints: list[StreamSavepoint] = []
    problems = _problems_of_file(text, ours, one_job=one_job)
    for document in ours:
        match parse_or_explain(document.data):
            case StreamJob() as job:
                jobs.append(job)
                index = documents.index(document)
                problems += [_placed_problem(each, document, text, index) for each in _unknown_zone(job)]
            case StreamSavepoint() as savepoint:
                savepoints.append(savepoint)
            case found:
                index = documents.index(document)
                problems += [_placed_problem(each, document, text, index) for each in found]
    if problems:
        in_order = sorted(problems, key=lambda each: (each.line, each.column))
        return BadManifest(name, masked(text, _secrets_in(documents)), tuple(in_order))
    return LoadedManifest(name, tuple(jobs), tuple(savepoints), tuple(others))


def _unknown_zone(job: StreamJob) -> list[Problem]:
    """The form of a zone's name is the API's business; which ones there are, the zone database's."""
    name, path = job.spec.trigger.time_zone, ("spec", "trigger", "timeZone")
    if name is None or (message := zone_problem(name)) is None:
        return []
    near = nearest_zone(name) or "Etc/UTC"
    return [Problem(path, message, Fix(f"set timeZone: {near}", (SetValue(path, near),)), value=name)]


def _is_ours(data: Any) -> bool:
    """Whether a document is, or was meant to be, one of our kinds. Others may stand beside them."""
    if not isinstance(data, dict):
        return True
    group = str(data.get("apiVersion", "")).partition("/")[0]
    spec = data.get("spec")
    return (
        group.startswith(GROUP.partition(".")[0])
        or nearest_name(str(data.get("kind", "")), MODELS) is not None
        or ("kind" not in data and isinstance(spec, dict) and "application" in spec)
        or not ({"apiVersion", "kind"} & data.keys())
    )


def _problems_of_file(text: str, ours: list[Document], *, one_job: bool) -> list[PlacedProblem]:
    jobs = [document for document in ours if model_for(document.data) is StreamJob]
    if not ours or (one_job and not jobs):
        wanted = "StreamJob" if one_job else "StreamJob or StreamSavepoint"
        return [_placed(Span(0, 0), text, f"there is no {wanted} in this file", append_example(text))]
    if one_job and len(jobs) > 1:
        second = jobs[1].span
        fix = TextFix("keep one of them", (TextEdit(second.start, second.end, ""),))
        return [_placed(Span(second.start, second.start), text, "a second StreamJob: one is expected", fix)]
    return []


def _badness(text: str) -> float:
    """How far a text is from a good manifest: what a fix of its syntax is judged by."""
    documents = [each.data for each in scan(text)[0] if each.data is not None]
    faults = sum(len(find_faults(data, model_for(data))) for data in documents if _is_ours(data))
    return faults if documents else 1000


# ---- placing the problems


def _placed_problem(problem: Problem, document: Document, text: str, index: int) -> PlacedProblem:
    path = problem.path
    while path not in document.places:
        path = path[:-1]
    place = document.places[path]
    # What is missing has no place: its parent's key is where it belongs.
    wants_key = problem.points_at_key or not place.is_scalar or path != problem.path
    span = place.key if wants_key and place.key is not None else place.value
    return _placed(
        span, text, problem.message, problem.fix, field=problem.field, value=problem.value, document=index
    )


def _placed(
    span: Span,
    text: str,
    message: str,
    fix: Fix | TextFix,
    *,
    field: str = "",
    value: str = "",
    document: int = 0,
) -> PlacedProblem:
    line, column, length = position_of(span, text)
    return PlacedProblem(field, message, fix, line, column, length, value, document)


def _secrets_in(documents: list[Document]) -> list[Span]:
    return [
        place.value
        for document in documents
        for path, place in document.places.items()
        if place.is_scalar and is_secret(path, siblings=value_at(document.data, path[:-1]))
    ]


def _unreadable(source: Path, error: OSError | UnicodeDecodeError) -> BadManifest:
    why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
    problem = _placed(
        Span(0, 0), "", f"cannot be read: {why}", start_anew("", "write a manifest there, as UTF-8 text")
    )
    return BadManifest(str(source), "", (problem,))
