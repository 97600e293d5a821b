"""The code of a job, and what it needs beside the image."""

from __future__ import annotations

import re
from typing import Annotated

from headrace.api.choices import exactly_one, exactly_one_cel
from headrace.api.forms import Form, as_text, free_text
from headrace.api.model import ApiModel, Broken, Items, restart_field, rule, section
from headrace.api.names import DataKey, ObjectName

_S3 = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^\s]+"
_IN_IMAGE = r"local:///[^\s]+"
# Relative: no scheme, not absolute, and no way up out of the directory.
_RELATIVE = r"([A-Za-z0-9_][A-Za-z0-9_. -]*/)*[A-Za-z0-9_][A-Za-z0-9_. -]*"


def _places(endings: str) -> str:
    return rf"^({_S3}|{_IN_IMAGE}|{_RELATIVE})\.({endings})$"


def _place_from_speech(ending: str):
    def suggest(value: object) -> str | None:
        text = (as_text(value) or "").replace("\\", "/")
        text = re.sub(r"^(s3a|s3n|S3)://", "s3://", text)
        text = re.sub(r"^file://", "", text)
        if text.startswith("s3://"):
            bucket, _, key = text.removeprefix("s3://").partition("/")
            text = f"s3://{bucket.lower().replace('_', '-')}/{key}"
        elif text.startswith("/"):
            text = f"local://{text}"
        elif not text.startswith("local:///"):
            # Another scheme, or a way up: the file itself, put beside the manifest.
            text = re.sub(r"^[a-z0-9+.-]+:/*.*/|^(\.{1,2}/)+", "", text)
        return text if text.endswith(ending) else f"{text}{ending}"

    return suggest


def _place(expects: str, endings: str, example: str) -> Form:
    return Form(
        expects=expects,
        pattern=_places(endings),
        example=example,
        max_length=1024,
        suggest=_place_from_speech("." + example.rpartition(".")[2]),
    )


_FORMS = "s3://bucket/{0}, local:///path/in/image/{0}, or a relative path such as {0}"

FILE = _place(f"a Python file: {_FORMS.format('job.py')}", "py", "job.py")
PY_FILE = _place(f"a Python dependency: {_FORMS.format('lib.zip')}", "py|zip|whl|egg", "lib.zip")
JAR = _place(f"a jar: {_FORMS.format('lib.jar')}", "jar", "lib.jar")

MODULE = Form(
    expects="the dotted name of a Python module, like acme.jobs.clicks",
    pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$",
    example="acme.jobs.clicks",
    max_length=256,
    suggest=lambda value: (
        re.sub(r"\.py$", "", as_text(value) or "").strip("/").replace("/", ".").replace("-", "_")
    ),
)

_VERSION = r"(===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]+"

REQUIREMENT = Form(
    expects='a requirement as pip reads it, like "pandas==2.2.3"',
    # No options and no URLs: a line of a manifest must not be able to point pip at another index.
    pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]+\])?( ?{_VERSION}(, ?{_VERSION})*)?$",
    example="pandas==2.2.3",
    max_length=256,
    suggest=lambda value: re.sub(r"(?<![=<>!~])=(?!=)", "==", as_text(value) or ""),
)

ARGUMENT = free_text("a text", max_length=4096, example="--window")


class ConfigMapFile(ApiModel):
    """A file in a ConfigMap of the job's namespace."""

    name: ObjectName = restart_field("Name of the ConfigMap.")
    key: DataKey = restart_field("Key of the Python file in it.", default="job.py")


class Application(ApiModel):
    """The code to run: exactly one of `file`, `module` and `configMap`."""

    file: Annotated[str, FILE] | None = restart_field(
        """The PySpark file. `s3://bucket/key.py` is fetched with the settings of `checkpoint.s3`;
        `local:///opt/app/job.py` is a path in the image; a relative path is beside the manifest for `headrace
        dev` and under /opt/app in the image on a cluster. Each run keeps a copy of the file: a restart after
        a crash never picks up newer code. To run a new version under the same name, change
        `restartNonce`.""",
        default=None,
    )
    module: Annotated[str, MODULE] | None = restart_field(
        "A Python module of the image or of `pyFiles`, run as `python -m` would.", default=None
    )
    config_map: ConfigMapFile | None = section(
        "A PySpark file in a ConfigMap: code without an image and without a bucket.", default=None
    )
    args: Items[Annotated[str, ARGUMENT]] = restart_field(
        "Arguments of the program, as it finds them in `sys.argv`.", default=(), max_length=256
    )
    py_files: Items[Annotated[str, PY_FILE]] = restart_field(
        "More Python code (.py, .zip, .whl, .egg) for driver and executors; same forms as `file`.",
        default=(),
        max_length=64,
    )
    jars: Items[Annotated[str, JAR]] = restart_field(
        "Jars for driver and executors, such as a connector; same forms as `file`.", default=(), max_length=64
    )
    requirements: Items[Annotated[str, REQUIREMENT]] = restart_field(
        """Python packages that pip installs when a pod starts, driver or executor, so that no image has to be
        built. The image must have pip, which the default one has not; `PIP_INDEX_URL` in the `env` of both
        names another index. Pin them (`pandas==2.2.3`): an attempt must run what the run before it ran.""",
        default=(),
        max_length=64,
    )

    @rule(
        cel=exactly_one_cel("file", "module", "configMap"),
        message="exactly one of file, module and configMap says what to run",
    )
    def one_program(self) -> Broken | None:
        return exactly_one(
            self, "file", "module", "configMap", what="what to run", example=("file", FILE.example)
        )
