"""Kills the operator in every step of an upgrade, once."""

import signal
import threading
from typing import Self

from tests.e2e.install import NAMESPACE, Installed
from tests.e2e.nodes import own_nodes
from tests.e2e.streamjobs import Job

_LOOK_SECONDS = 0.1


class KilledInEachStep:
    """While it is entered: as soon as the status shows a step for the first time, the leader is dead."""

    def __init__(self, job: Job, operator: Installed) -> None:
        self._job, self._operator, self._nodes = job, operator, own_nodes(job.cluster)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.in_steps: list[tuple[str, str]] = []
        self.last_fault: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self._look()
            except Exception as fault:
                # A process that has just ended, an answer that took too long: the next look is near.
                # Whether each step was met is for the test to say.
                self.last_fault = fault

    def _look(self) -> None:
        operation = self._job.status().get("operation") or {}
        step = (operation.get("kind", ""), operation.get("step", ""))
        if operation and step not in self.in_steps and self._kill_leader():
            self.in_steps.append(step)

    def _kill_leader(self) -> bool:
        leader = self._operator.leader()
        if leader is None or not _runs(leader):
            return False
        self._nodes.signal_container(leader, "operator", signal.SIGKILL)
        # Another pod comes at once; the same container would have to wait longer after every time.
        self._job.cluster.kill_pod(NAMESPACE, leader["metadata"]["name"])
        return True


def _runs(pod: dict) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    return any("running" in one["state"] for one in statuses if one["name"] == "operator")
