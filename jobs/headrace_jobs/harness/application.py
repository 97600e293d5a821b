"""Runs the user's application as Python itself would: `python job.py …` or `python -m package.module …`."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import sys
import types
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

from headrace_jobs.harness.failure import UserCode
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.runfile import Application


@dataclass(frozen=True)
class Program:
    """An application that was found and compiled, not yet run."""

    code: types.CodeType
    origin: str
    spec: ModuleSpec | None
    args: tuple[str, ...]


def import_path(application: Application) -> list[str]:
    """What comes first on the import path, in the driver and in Python workers."""
    directories = [path for path in application.py_files if Path(path).is_dir()]
    home = str(Path(application.file).resolve().parent) if application.file else str(Path.cwd())
    return [home, *directories]


def find_program(application: Application) -> Program:
    """Needs the import path to be set. Raises what is wrong with the user's file, as Python would."""
    if application.file is not None:
        path = Path(application.file)
        if not path.is_file():
            raise Refused(f"{path} does not exist in the driver. Correct application.file")
        with io.open_code(str(path)) as source:
            code = compile(source.read(), str(path), "exec", dont_inherit=True)
        return Program(code, str(path), None, application.args)
    return _find_module(application.module or "", application.args)


def user_code(application: Application, program: Program) -> UserCode:
    if program.spec is None:
        return UserCode()
    package = (application.module or "").split(".")[0]
    top = importlib.util.find_spec(package)
    roots = tuple(top.submodule_search_locations or ()) if top else ()
    return UserCode(roots or (str(Path(program.origin).parent),))


def run_program(program: Program) -> None:
    """Runs it as `__main__` in this thread. Whatever it raises comes out, SystemExit included."""
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=program.origin,
        __builtins__=builtins,
        __spec__=program.spec,
        __package__=program.spec.parent if program.spec else None,
        __loader__=program.spec.loader if program.spec else None,
        __cached__=None,
    )
    # Kept for good: foreachBatch functions live on in it when the script has ended.
    sys.modules["__main__"] = main
    sys.argv = [program.origin, *program.args]
    exec(program.code, main.__dict__)  # noqa: S102 - running the user's code is the purpose


def _find_module(name: str, args: tuple[str, ...]) -> Program:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")  # a package runs by its __main__
    except ModuleNotFoundError:
        spec = None
    loader = spec.loader if spec else None
    code = getattr(loader, "get_code", lambda _name: None)(spec.name) if spec else None
    if spec is None or code is None:
        where = os.pathsep.join(path for path in sys.path[:3] if path)
        raise Refused(f"there is no module {name} to run ({where}, …). Correct application.module")
    return Program(code, spec.origin or name, spec, args)
