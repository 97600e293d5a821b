"""Helm goes where kubectl goes, and an installed Headrace is seen."""

from tests.e2e.install import connection_flags, releases_of_headrace


def test_helm_gets_the_kubeconfig_or_the_context_of_kubectl():
    assert connection_flags(("kubectl", "--kubeconfig=/k")) == ["--kubeconfig=/k"]
    assert connection_flags(("kubectl", "--context=team-a")) == ["--kube-context=team-a"]


def test_a_release_is_known_by_its_name_or_its_chart():
    def release(name: str, chart: str) -> dict[str, str]:
        return {"name": name, "namespace": "streams", "chart": chart, "status": "failed"}

    ours = [release("headrace", "headrace-0.1.0"), release("streaming", "headrace-0.2.0")]
    others = [release("grafana", "grafana-8.0.0"), release("board", "headrace-dashboards-1.0.0")]
    assert releases_of_headrace([*others, *ours]) == [
        "release headrace in namespace streams",
        "release streaming in namespace streams",
    ]
