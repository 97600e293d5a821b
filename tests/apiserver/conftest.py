"""A real API server for the tests of this folder: etcd and kube-apiserver on loopback, started once."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.api import Api
from tests.cluster.console import MissingError
from tests.cluster.controlplane import ApiServer, running_api_server
from tests.cluster.processes import wait_until

CRDS = Path(__file__).parents[2] / "crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    try:
        with running_api_server(tmp_path_factory.mktemp("apiserver")) as server:
            yield server
    except MissingError as missing:
        pytest.exit(str(missing), returncode=2)


@pytest.fixture(scope="session")
def bare_api(api_server: ApiServer) -> Api:
    """The API before anything of Headrace is in it."""
    return Api.from_kubeconfig(api_server.kubeconfig)


@pytest.fixture(scope="session")
def crds(bare_api: Api) -> dict[str, dict[str, Any]]:
    """Headrace's CRDs as the server keeps them, by plural name."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(CRDS.glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        bare_api.apply(path, definition).need()
        assert wait_until(lambda path=path: _condition(bare_api, path, "Established") == "True", seconds=20)
        found[definition["spec"]["names"]["plural"]] = bare_api.get(path).need()
    return found


@pytest.fixture(scope="session")
def api(bare_api: Api, crds: dict[str, Any]) -> Api:
    """The API with Headrace's CRDs, once they are really served."""
    paths = [f"/apis/headrace.dev/v1alpha1/{plural}" for plural in crds]
    assert wait_until(lambda: all(bare_api.get(path).ok for path in paths), seconds=20)
    return bare_api


@pytest.fixture
def namespace(api: Api, request: pytest.FixtureRequest) -> str:
    """One of its own for each test: nothing is left for the next, and nothing has to be cleaned up."""
    created = api.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
    )
    return created.need()["metadata"]["name"]


@pytest.fixture(scope="session")
def kubectl(api_server: ApiServer, api: Api) -> Callable[..., str]:
    def run(*arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [api_server.kubectl, f"--kubeconfig={api_server.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def _condition(api: Api, path: str, kind: str) -> str | None:
    conditions = api.get(path).need()["status"].get("conditions") or []
    return next((one["status"] for one in conditions if one["type"] == kind), None)
