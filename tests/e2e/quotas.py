"""How many pods a namespace may have, for as long as a test wants it so."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.api import Api


@contextmanager
def pods_at_most(api: Api, namespace: str, number: int) -> Iterator[None]:
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/pods"
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"}}
    api.apply(path, {**body, "spec": {"hard": {"pods": str(number)}}}).need()
    try:
        yield
    finally:
        api.delete(path).need()
