"""The API of Headrace: StreamJob and StreamSavepoint, group headrace.dev, version v1alpha1.

The models here are the one source of the CRDs, the reference page, the editor schema, the defaults, the plan
of an edit, and the messages about a bad manifest.
"""

from headrace.api.application import Application
from headrace.api.lifecycle import Restart, StartFrom, Trigger
from headrace.api.model import Change
from headrace.api.names import (
    API_VERSION,
    COLLECT_ANNOTATION,
    FINALIZER,
    GROUP,
    PAUSE_ANNOTATION,
    RESTORE_ANNOTATION,
    ROLLBACK_ANNOTATION,
    SAVEPOINT_FINALIZER,
    VERIFY_ANNOTATION,
    VERSION,
)
from headrace.api.quantities import Duration, Memory
from headrace.api.savepoint import (
    Check,
    SavedQuery,
    StreamSavepoint,
    StreamSavepointSpec,
    StreamSavepointStatus,
    Verification,
)
from headrace.api.scaling import Autoscaling, Idle
from headrace.api.status import (
    Activation,
    Attempt,
    Beginning,
    Candidate,
    Collection,
    Condition,
    ExecutorsStatus,
    FoundSavepoint,
    HistoryEntry,
    LagStatus,
    Operation,
    PlannedEdit,
    Rejection,
    Restarts,
    Run,
    Sleep,
    StableRun,
    StreamJobStatus,
    Termination,
    UserFrame,
)
from headrace.api.streamjob import StreamJob, StreamJobSpec

__all__ = [
    "API_VERSION",
    "COLLECT_ANNOTATION",
    "FINALIZER",
    "GROUP",
    "PAUSE_ANNOTATION",
    "RESTORE_ANNOTATION",
    "ROLLBACK_ANNOTATION",
    "SAVEPOINT_FINALIZER",
    "VERIFY_ANNOTATION",
    "VERSION",
    "Activation",
    "Application",
    "Attempt",
    "Autoscaling",
    "Beginning",
    "Candidate",
    "Change",
    "Check",
    "Collection",
    "Condition",
    "Duration",
    "ExecutorsStatus",
    "FoundSavepoint",
    "HistoryEntry",
    "Idle",
    "LagStatus",
    "Memory",
    "Operation",
    "PlannedEdit",
    "Rejection",
    "Restart",
    "Restarts",
    "Run",
    "SavedQuery",
    "Sleep",
    "StableRun",
    "StartFrom",
    "StreamJob",
    "StreamJobSpec",
    "StreamJobStatus",
    "StreamSavepoint",
    "StreamSavepointSpec",
    "StreamSavepointStatus",
    "Termination",
    "Trigger",
    "UserFrame",
    "Verification",
]
