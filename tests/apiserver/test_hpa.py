"""A real HorizontalPodAutoscaler sets the number of executors, as it would a Deployment's replicas.

Of Kubernetes' controllers only the HPA's runs here, and no pod. What the operator makes of the number is
shown by tests/sim and, with pods, by tests/e2e/test_autoscaling.py.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import binaries
from tests.cluster.api import Api
from tests.cluster.controlplane import ApiServer
from tests.cluster.processes import start, wait_until
from tests.e2e.hpa import ExternalMetric, autoscaler

pytestmark = pytest.mark.full  # kube-controller-manager is compiled the first time


@pytest.fixture
def hpa_controller(api_server: ApiServer, tmp_path: Path) -> Iterator[Path]:
    """Its log."""
    program = binaries.ensure(("kube-controller-manager",))["kube-controller-manager"]
    log = tmp_path / "controller.log"
    command = [
        *("setpriv", "--pdeathsig", "KILL", str(program)),
        f"--kubeconfig={api_server.kubeconfig}",
        "--leader-elect=false",
        "--controllers=horizontal-pod-autoscaler-controller",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--secure-port=0",
    ]
    process = start("kube-controller-manager", command, log=log)
    yield log
    process.end()


def test_an_hpa_drives_the_scale_subresource(
    api: Api, namespace: str, kubectl: Callable[..., str], hpa_controller: Path
):
    jobs = f"/apis/headrace.dev/v1alpha1/namespaces/{namespace}/streamjobs"
    spec = {"application": {"file": "local:///job.py"}, "autoscaling": {"mode": "Off", "max": 8}}
    manifest = {"apiVersion": "headrace.dev/v1alpha1", "kind": "StreamJob", "metadata": {"name": "ramp"}}
    api.create(jobs, {**manifest, "spec": spec}).need()

    def there_are(replicas: int) -> None:
        """As the operator would write it."""
        selector = "headrace.dev/job=ramp,headrace.dev/role=executor"
        status = f'{{"status":{{"executors":{{"replicas":{replicas},"selector":"{selector}"}}}}}}'
        patch = ("patch", "streamjob", "ramp", "-n", namespace, "--subresource=status", "--type=merge")
        kubectl(*patch, "-p", status)

    def wait_for(count: int) -> None:
        def is_set() -> bool:
            return api.get(f"{jobs}/ramp").need()["spec"]["executors"]["count"] == count

        assert wait_until(is_set, seconds=90, every=0.5), hpa_controller.read_text()[-3000:]

    metric = ExternalMetric(api, namespace, "ramp-arrival")
    metric.define()
    try:
        metric.tell(110.0)
        there_are(1)
        hpas = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
        hpa = autoscaler("ramp", metric.name, rows_per_executor=40, most=3)
        hpa["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
        api.apply(f"{hpas}/ramp", hpa).need()
        wait_for(3)
        there_are(3)
        metric.tell(12.5)
        wait_for(1)
    finally:
        metric.remove()
