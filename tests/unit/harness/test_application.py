"""Running the user's code as Python itself would."""

import sys
import textwrap

import pytest

from headrace_jobs.harness.application import find_program, import_path, run_program, user_code
from headrace_jobs.harness.rules import Refused
from headrace_jobs.harness.runfile import Application


@pytest.fixture(autouse=True)
def interpreter_as_before(monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


def an_application(file=None, module=None, args=(), py_files=()):
    return Application(file=file and str(file), module=module, args=tuple(args), py_files=tuple(py_files))


def run(application):
    sys.path[0:0] = import_path(application)
    run_program(find_program(application))
    return sys.modules["__main__"].__dict__


def test_a_file_runs_as_main_with_its_arguments_and_its_neighbours(tmp_path):
    (tmp_path / "neighbour_of_job.py").write_text("X = 42\n")
    (tmp_path / "job.py").write_text(
        textwrap.dedent(
            """
            import sys
            from neighbour_of_job import X
            argv, name, file = sys.argv, __name__, __file__
            me = sys.modules["__main__"]
            """
        )
    )
    left = run(an_application(tmp_path / "job.py", args=["--window", "1m"]))
    assert left["argv"] == [str(tmp_path / "job.py"), "--window", "1m"]
    assert left["name"] == "__main__"
    assert left["file"] == str(tmp_path / "job.py")
    assert left["X"] == 42
    assert left["me"].X == 42


def test_functions_of_the_script_live_on_when_it_has_ended(tmp_path):
    (tmp_path / "job.py").write_text("factor = 3\ndef scaled(x):\n    return x * factor\n")
    scaled = run(an_application(tmp_path / "job.py"))["scaled"]
    assert scaled(5) == 15


def test_a_module_of_a_package_runs_with_relative_imports(tmp_path, monkeypatch):
    package = tmp_path / "shop_of_tests"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "prices.py").write_text("P = 7\n")
    (package / "job.py").write_text("from .prices import P\nname = __name__\n")
    (package / "__main__.py").write_text("ran = 'package'\n")
    monkeypatch.chdir(tmp_path)
    left = run(an_application(module="shop_of_tests.job"))
    assert (left["P"], left["name"]) == (7, "__main__")
    assert run(an_application(module="shop_of_tests"))["ran"] == "package"
    application = an_application(module="shop_of_tests.job")
    assert user_code(application, find_program(application)).owns(str(package / "prices.py"))


def test_directories_of_py_files_are_on_the_import_path(tmp_path):
    (tmp_path / "lib").mkdir()
    application = an_application(tmp_path / "job.py", py_files=[str(tmp_path / "lib"), "/not/there.zip"])
    assert import_path(application) == [str(tmp_path), str(tmp_path / "lib")]


@pytest.mark.parametrize(
    "application", [an_application("/no/such/job.py"), an_application(module="no.such.job")]
)
def test_what_is_not_there_is_refused_with_the_field_to_correct(application):
    with pytest.raises(Refused) as refusal:
        find_program(application)
    assert "Correct application." in str(refusal.value)


def test_an_exit_of_the_script_comes_out(tmp_path):
    (tmp_path / "job.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(SystemExit) as ended:
        run(an_application(tmp_path / "job.py"))
    assert ended.value.code == 3
