"""What belongs to the application's code, and what a run is pinned to."""

from pathlib import Path

import pytest

from headrace.api import Application
from headrace.core.model import Code, CodeProblem
from headrace.local import code


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "prices.py").write_text("from . import rates\n")
    (tmp_path / "lib" / "rates.py").write_text("RATE = 2\n")
    (tmp_path / "helper.py").write_text("import json\n")
    (tmp_path / "unrelated.py").write_text("1\n")
    (tmp_path / "job.py").write_text("import helper\nfrom lib.prices import rates\nimport pyspark\n")
    return tmp_path


def app(**fields) -> Application:
    return Application.parse(fields)


def digest(application: Application, base: Path) -> str:
    seen = code.observe(application, base)
    assert isinstance(seen, Code), seen
    return seen.digest


def test_the_modules_beside_the_file_belong_to_it(project):
    sources = code.look(app(file="job.py"), project)
    assert not isinstance(sources, CodeProblem)
    names = {str(path.relative_to(project)) for path in sources.files}
    assert names == {"job.py", "helper.py", "lib/__init__.py", "lib/prices.py", "lib/rates.py"}


@pytest.mark.parametrize(
    ("file", "changes"),
    [("job.py", True), ("helper.py", True), ("lib/rates.py", True), ("unrelated.py", False)],
)
def test_saving_a_file_is_an_edit_only_if_it_belongs(project, file, changes):
    before = digest(app(file="job.py"), project)
    path = project / file
    path.write_text(path.read_text() + "# edited\n")
    assert (digest(app(file="job.py"), project) != before) is changes


def test_a_module_brings_its_own_files(project):
    (project / "lib" / "main.py").write_text("from lib import prices\n")
    sources = code.look(app(module="lib.main"), project)
    assert not isinstance(sources, CodeProblem)
    names = {str(path.relative_to(project)) for path in sources.files}
    assert names == {"lib/__init__.py", "lib/main.py", "lib/prices.py", "lib/rates.py"}


def test_an_installed_module_has_no_files_here(project):
    sources = code.look(app(module="json.tool"), project)
    assert not isinstance(sources, CodeProblem)
    assert sources.files == ()


def test_a_pinned_copy_is_whole_and_has_the_same_digest(project, tmp_path_factory):
    sources = code.look(app(file="job.py"), project)
    assert not isinstance(sources, CodeProblem)
    target = tmp_path_factory.mktemp("pin") / "_code"
    assert code.pin(sources, target).digest == digest(app(file="job.py"), project)
    assert (target / "lib" / "rates.py").read_text() == "RATE = 2\n"
    (project / "job.py").write_text("x = 1\n")
    again = code.look(app(file="job.py"), project)
    assert not isinstance(again, CodeProblem)
    code.pin(again, target)
    assert not (target / "lib").exists(), "what an earlier pin left must go"


@pytest.mark.parametrize(
    ("content", "says"),
    [("def f(:\n", "job.py:1: "), ("x = 1\n  y = 2\n", "job.py:2: unexpected indent"), ("a\0b", "job.py")],
)
def test_code_that_cannot_run_is_a_problem_with_its_line(project, content, says):
    (project / "job.py").write_text(content)
    problem = code.observe(app(file="job.py"), project)
    assert isinstance(problem, CodeProblem)
    assert says in problem.message


def test_a_syntax_error_in_a_helper_names_the_helper(project):
    (project / "helper.py").write_text("class\n")
    problem = code.observe(app(file="job.py"), project)
    assert isinstance(problem, CodeProblem)
    assert problem.message.startswith("helper.py:1: ")


@pytest.mark.parametrize(
    ("application", "says"),
    [
        (app(file="missing.py"), "there is no missing.py"),
        (app(file="s3://bucket/clicks.py"), "headrace dev --file clicks.py"),
        (app(file="local:///opt/app/clicks.py"), "headrace dev --file clicks.py"),
        (app(configMap={"name": "code", "key": "job.py"}), "headrace dev --file"),
        (app(file="job.py", pyFiles=["gone.py"]), "no file gone.py"),
    ],
)
def test_code_that_is_not_here_is_said_with_the_way_out(project, application, says):
    problem = code.observe(application, project)
    assert isinstance(problem, CodeProblem)
    assert says in problem.message


def test_an_override_runs_a_local_file(project):
    seen = code.observe(app(file="s3://bucket/job.py"), project, project / "job.py")
    assert seen == Code(digest(app(file="job.py"), project))


def test_modules_that_import_each_other_end(project):
    (project / "helper.py").write_text("import job\n")
    assert isinstance(code.observe(app(file="job.py"), project), Code)
