"""`application.requirements`: an init container of the job's image installs them, in driver and executors.

By the image's own pip and Python, so that what has compiled parts fits. The index and what it takes to reach
it come from the pod's environment (`PIP_INDEX_URL`, …), as everywhere.
"""

from __future__ import annotations

import json

from headrace.api.pods import PodSettings
from headrace.core.manifests.attempt import DriverAttempt, Platform
from headrace.core.manifests.ownership import Manifest
from headrace.core.manifests.places import REQUIREMENTS
from headrace.core.manifests.pod import container
from headrace.core.manifests.sizes import resources

_VOLUME = "requirements"
_RESULT = "/dev/termination-log"

INSTALLER = "requirements"

# $0: where the last words go, $1: those for an image without pip, $2: the directory, then the requirements.
# They cannot be options: the API takes none, and `--` makes sure.
_INSTALL = """\
if ! python3 -m pip --version >/dev/null 2>&1; then printf %s "$1" >"$0"; exit 64; fi
target="$2"; shift 2
exec python3 -m pip install --no-input --no-cache-dir --disable-pip-version-check --target "$target" -- "$@"
"""


def requirements_installer(
    attempt: DriverAttempt, settings: PodSettings, platform: Platform
) -> list[Manifest]:
    """For the pod with these settings; none where nothing is required."""
    wanted, image = attempt.spec.application.requirements, attempt.image_on(platform)
    if not wanted:
        return []
    no_pip = {
        "reason": "Refused",
        "message": f"spec.application.requirements: the image {image} has no pip to install them with. Name "
        "an image with pip in spec.image, or one that has the packages, and remove the requirements",
    }
    return [
        container(
            settings,
            name=INSTALLER,
            env=[],
            mounts=requirements_mounts(attempt, read_only=False),
            more={
                "image": image,
                "imagePullPolicy": attempt.spec.image_pull_policy or platform.image_pull_policy,
                "command": ["/bin/sh", "-c", _INSTALL, _RESULT, json.dumps(no_pip), REQUIREMENTS, *wanted],
                "resources": resources(settings),
                "terminationMessagePath": _RESULT,
                # pip's own last lines say which package, and why.
                "terminationMessagePolicy": "FallbackToLogsOnError",
            },
        )
    ]


def requirements_volumes(attempt: DriverAttempt) -> list[Manifest]:
    return [{"name": _VOLUME, "emptyDir": {}}] if attempt.spec.application.requirements else []


def requirements_mounts(attempt: DriverAttempt, *, read_only: bool = True) -> list[Manifest]:
    if not attempt.spec.application.requirements:
        return []
    mount: Manifest = {"name": _VOLUME, "mountPath": REQUIREMENTS}
    return [{**mount, "readOnly": True} if read_only else mount]


def python_path(attempt: DriverAttempt, *first: str) -> list[Manifest]:
    """The variable by which Python finds them, after what Headrace itself brings; none where it is empty."""
    required = [REQUIREMENTS] if attempt.spec.application.requirements else []
    path = ":".join((*first, *required))
    return [{"name": "PYTHONPATH", "value": path}] if path else []
