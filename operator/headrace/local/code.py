"""The application's code on this machine: what belongs to it, its digest, and the copy a run is pinned to.

What belongs to it is the file, the modules beside it that it imports (and theirs), and `pyFiles`. So saving
a helper module is an edit of the job, and a crash restart never picks up a half-saved one.
"""

from __future__ import annotations

import ast
import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headrace.api import Application
from headrace.core.model import Code, CodeProblem


@dataclass(frozen=True)
class Sources:
    """Files of the application, all below `root`; `entry` is what runs (None: a module that is installed)."""

    root: Path
    entry: Path | None
    module: str | None
    files: tuple[Path, ...]
    py_files: tuple[Path, ...]

    def place(self, path: Path) -> str:
        """Where a file stands in the pinned copy; one from outside the root stands beside the entry."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else path.name

    def digest(self) -> str:
        digest = hashlib.sha256()
        for path in (*self.files, *self.py_files):
            digest.update(self.place(path).encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()


def look(application: Application, base: Path, override: Path | None = None) -> Sources | CodeProblem:
    """Find the application's files relative to the manifest's directory and check that they parse."""
    root = base.resolve()
    py_files: list[Path] = []
    for name in application.py_files:
        path = (root / name).resolve()
        if "://" in name:
            return CodeProblem(
                f"spec.application.pyFiles: {name} is remote; `headrace dev` reads local files only"
            )
        if not path.is_file():
            return CodeProblem(f"spec.application.pyFiles: no file {name} beside the manifest")
        py_files.append(path)
    if application.module is not None:
        return _look_at_module(application.module, root, tuple(py_files))
    entry = override or _entry_file(application, root)
    if isinstance(entry, CodeProblem):
        return entry
    if not entry.is_file():
        return CodeProblem(
            f"spec.application.file: there is no {_shown(entry, root)}. Create it, or fix the path"
        )
    entry_root = root if entry.resolve().is_relative_to(root) else entry.resolve().parent
    closure = _import_closure(entry.resolve(), entry_root)
    if isinstance(closure, CodeProblem):
        return closure
    return Sources(
        root=entry_root, entry=entry.resolve(), module=None, files=closure, py_files=tuple(py_files)
    )


def observe(application: Application, base: Path, override: Path | None = None) -> Code | CodeProblem:
    sources = look(application, base, override)
    if isinstance(sources, CodeProblem):
        return sources
    try:
        return Code(sources.digest())
    except OSError as gone:  # an editor may replace a file between the look and the read
        return CodeProblem(f"{gone.filename}: {gone.strerror}")


def pin(sources: Sources, target: Path) -> Code:
    """Copy the files as they are laid out, replacing what an earlier pin of the same run left.

    Answers with the digest of what was copied, which a save in between makes another than was looked at.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in (*sources.files, *sources.py_files):
        copy = target / sources.place(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    copied = Sources(
        root=target,
        entry=None,
        module=None,
        files=tuple(target / sources.place(path) for path in sources.files),
        py_files=tuple(target / sources.place(path) for path in sources.py_files),
    )
    return Code(copied.digest())


def _entry_file(application: Application, root: Path) -> Path | CodeProblem:
    if application.file is None:
        return CodeProblem(
            "spec.application.configMap: there are no ConfigMaps on this machine. "
            "Name the local file instead: headrace dev --file job.py"
        )
    if application.file.startswith("file://"):
        return Path(application.file.removeprefix("file://"))
    if "://" in application.file:
        name = application.file.rsplit("/", 1)[-1]
        return CodeProblem(
            f"spec.application.file: {application.file} is not on this machine. "
            f"Name the local file instead: headrace dev --file {name}"
        )
    return root / application.file


def _look_at_module(module: str, root: Path, py_files: tuple[Path, ...]) -> Sources | CodeProblem:
    found = _module_file(module, root)
    if found is None:  # installed in the environment: pinned by whoever installed it
        return Sources(root=root, entry=None, module=module, files=(), py_files=py_files)
    closure = _import_closure(found, root)
    if isinstance(closure, CodeProblem):
        return closure
    return Sources(root=root, entry=None, module=module, files=closure, py_files=py_files)


def _import_closure(entry: Path, root: Path) -> tuple[Path, ...] | CodeProblem:
    todo, seen = [entry], {entry}
    while todo:
        path = todo.pop()
        try:
            tree = ast.parse(path.read_bytes(), filename=str(path))
        except SyntaxError as error:
            line = f":{error.lineno}" if error.lineno else ""
            source = f"\n    {error.text.strip()}" if error.text else ""
            return CodeProblem(f"{_shown(path, root)}{line}: {error.msg}{source}")
        except (OSError, ValueError) as error:
            return CodeProblem(f"{_shown(path, root)}: {error}")
        for name in _imported_modules(tree, path, root):
            for found in _package_files(name, (path.parent, entry.parent, root), root):
                if found not in seen:
                    seen.add(found)
                    todo.append(found)
    return tuple(sorted(seen))


def _imported_modules(tree: ast.AST, path: Path, root: Path) -> Iterable[str]:
    package = ".".join(path.parent.relative_to(root).parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            above = parts[: len(parts) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            if module:
                yield module
            yield from (f"{module}.{alias.name}" if module else alias.name for alias in node.names)


def _package_files(module: str, places: tuple[Path, ...], root: Path) -> Iterable[Path]:
    """The file of a module and the `__init__.py` of the packages above it, if they are ours."""
    parts = module.split(".")
    for place in dict.fromkeys(places):
        if not place.is_relative_to(root) or (found := _module_file(module, place)) is None:
            continue
        yield found
        for depth in range(1, len(parts)):
            init = place.joinpath(*parts[:depth], "__init__.py")
            if init.is_file():
                yield init
        return


def _module_file(module: str, place: Path) -> Path | None:
    stem = place.joinpath(*module.split("."))
    for candidate in (stem.with_suffix(".py"), stem / "__main__.py", stem / "__init__.py"):
        if candidate.is_file():
            return candidate.resolve()
    return None


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
