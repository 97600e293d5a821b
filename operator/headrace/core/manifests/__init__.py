"""An attempt -> the Kubernetes objects that carry it out. One file per object; none of them can fail.

Made in this order (DESIGN §6): the token's Secret, the ConfigMap and the Service first, then the driver pod,
which is created and never applied over a namesake. Spark itself makes the executors, from the template in
the ConfigMap.
"""

from headrace.core.manifests.attempt import Candidacy, DriverAttempt, Platform
from headrace.core.manifests.config_map import config_map
from headrace.core.manifests.disruption_budget import disruption_budget, disruption_budget_name
from headrace.core.manifests.driver_pod import driver_pod
from headrace.core.manifests.keeper_pod import (
    Deletion,
    OrphanHunt,
    SavepointWork,
    Seeding,
    collector_pod,
    deletion_pod,
    savepoint_pod,
    seeding_pod,
)
from headrace.core.manifests.lookout_pod import Lookout, lookout_pod
from headrace.core.manifests.run_pin import RunPin, read_run_pin, run_pin
from headrace.core.manifests.service import driver_service
from headrace.core.manifests.stream_savepoint import stream_savepoint
from headrace.core.manifests.token_secret import token_secret

__all__ = [
    "Candidacy",
    "Deletion",
    "DriverAttempt",
    "Lookout",
    "OrphanHunt",
    "Platform",
    "RunPin",
    "SavepointWork",
    "Seeding",
    "collector_pod",
    "config_map",
    "deletion_pod",
    "disruption_budget",
    "disruption_budget_name",
    "driver_pod",
    "driver_service",
    "lookout_pod",
    "read_run_pin",
    "run_pin",
    "savepoint_pod",
    "seeding_pod",
    "stream_savepoint",
    "token_secret",
]
