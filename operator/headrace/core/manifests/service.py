"""The headless Service of an attempt: the name by which executors find the driver."""

from __future__ import annotations

from headrace.core.manifests.attempt import DriverAttempt, Manifest
from headrace.core.manifests.places import AGENT_PORT, BLOCK_MANAGER_PORT, DRIVER_PORT, UI_PORT


def driver_service(attempt: DriverAttempt) -> Manifest:
    ports = {
        "driver": DRIVER_PORT,
        "block-manager": BLOCK_MANAGER_PORT,
        "agent": AGENT_PORT,
        "ui": UI_PORT,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": attempt.metadata("driver"),
        "spec": {
            "clusterIP": "None",
            # Executors come before the driver calls itself ready.
            "publishNotReadyAddresses": True,
            "selector": attempt.selector,
            "ports": [{"name": name, "port": port, "targetPort": port} for name, port in ports.items()],
        },
    }
