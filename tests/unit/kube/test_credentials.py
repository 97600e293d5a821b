"""Who we are to the API server: the header must be there, and fresh."""

import json
import ssl
from pathlib import Path

import certifi
import pytest
from kubernetes.config import kube_config

from headrace.kube.credentials import in_cluster, load_credentials

SERVICE = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text(Path(certifi.where()).read_text())
    return tmp_path


def test_a_pod_is_its_service_account(account: Path):
    found = in_cluster(account, SERVICE, clock=lambda: 0.0)
    assert found is not None
    assert found.server == "https://10.96.0.1:443"
    assert found.authorization() == "Bearer first"
    assert found.tls is not None and found.tls.verify_mode is ssl.CERT_REQUIRED


def test_a_token_that_was_replaced_is_read_again(account: Path):
    moment = 0.0
    found = in_cluster(account, SERVICE, clock=lambda: moment)
    assert found is not None
    assert found.authorization() == "Bearer first"
    (account / "token").write_text("second\n")
    moment = 61.0
    assert found.authorization() == "Bearer second"


def test_an_address_of_version_6_is_put_in_brackets(account: Path):
    found = in_cluster(account, {**SERVICE, "KUBERNETES_SERVICE_HOST": "fd00::1"}, clock=lambda: 0.0)
    assert found is not None
    assert found.server == "https://[fd00::1]:443"


def test_outside_of_a_pod_there_is_no_service_account(account: Path, tmp_path: Path):
    assert in_cluster(account, {}, clock=lambda: 0.0) is None
    assert in_cluster(tmp_path / "none", SERVICE, clock=lambda: 0.0) is None


def test_the_token_of_a_kubeconfig_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "mine"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    # The client has read KUBECONFIG when it was imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    found = load_credentials()
    assert found.authorization() == "Bearer mine"
    assert found.server == "http://127.0.0.1:1"
