"""How many executors a job should have, from its lag: pure, clock-free, explained.

`decide(observation, memory)` answers with a `Decision` and the memory for the next one. Everything it knows
comes in with the observation; everything it keeps is in the memory, which is JSON.
"""

from headrace.core.autoscale.memory import Memory
from headrace.core.autoscale.observation import (
    Batch,
    Decision,
    Executors,
    Limits,
    Numbers,
    Observation,
    Query,
    Reason,
)
from headrace.core.autoscale.policy import decide

__all__ = [
    "Batch",
    "Decision",
    "Executors",
    "Limits",
    "Memory",
    "Numbers",
    "Observation",
    "Query",
    "Reason",
    "decide",
]
