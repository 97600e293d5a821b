"""Decisions as Kubernetes Events: what `kubectl describe` shows. Repeats are counted, not repeated."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace.core.autoscale import Reason
from headrace.core.decision import Sentence
from headrace.core.model import Ending
from headrace.kube.client import Api, Object
from headrace.kube.errors import AlreadyExists, ApiError, NotFound
from headrace.kube.memory import Recent
from headrace.kube.resources import EVENTS

log = logging.getLogger("headrace")

_NORMAL = frozenset(
    {
        "Starting",
        "Upgrade",
        "Rehearsed",
        "Activating",
        "HandedOver",
        "Promoted",
        "Restore",
        "AppliedLive",
        Ending.COMPLETED,
        Ending.DRAINED,
        "Savepoint",
        "SavepointRemoved",
        "Collected",
        "Taken",
        "Imported",
        "FallsAsleep",
        "Woken",
        # Executors that follow the load; a loss that is near is a warning.
        Reason.LAG_GROWS,
        Reason.ARRIVAL_EXCEEDS_CAPACITY,
        Reason.BACKLOG,
        Reason.LESS_IS_ENOUGH,
        Reason.OUT_OF_LIMITS,
    }
)
# Within this time the same sentence is the same news.
_OLD_NEWS = timedelta(minutes=5)
_LONGEST_MESSAGE = 1024


@dataclass
class _Told:
    # How often, as far as the server has confirmed it.
    count: int
    at: datetime


@dataclass(frozen=True)
class EventRecorder:
    api: Api
    instance: str
    _told: Recent[str, _Told] = field(default_factory=Recent[str, _Told])

    async def record(self, about: Object, sentence: Sentence, *, now: datetime) -> None:
        """Never in the way: an Event that cannot be written is a line in the log."""
        name = _name(about, sentence)
        told = self._told.get(name)
        # A clock that was put back must not silence it until it comes to where it was.
        if told is not None and abs(now - told.at) < _OLD_NEWS:
            return
        self._told[name] = _Told(count=0 if told is None else told.count, at=now)
        namespace = about["metadata"]["namespace"]
        log.info("%s/%s: %s: %s", namespace, about["metadata"]["name"], sentence.reason, sentence.message)
        try:
            await self._write(namespace, name, about, sentence, now)
        except ApiError as error:
            log.warning("an Event could not be written: %s", error)

    async def _write(
        self, namespace: str, name: str, about: Object, sentence: Sentence, now: datetime
    ) -> None:
        told = self._told[name]
        if told.count > 0:
            try:
                return await self._count(namespace, name, told.count + 1, now)
            except NotFound:
                told.count = 0  # the server keeps Events for an hour only
        try:
            await self.api.create(EVENTS, namespace, self._event(name, about, sentence, now))
            told.count = 1
        except AlreadyExists:
            # Told by an earlier operator process: go on counting where it was.
            there = await self.api.get(EVENTS, namespace, name)
            await self._count(namespace, name, int(there.get("count") or 1) + 1, now)

    async def _count(self, namespace: str, name: str, count: int, now: datetime) -> None:
        await self.api.patch(EVENTS, namespace, name, {"count": count, "lastTimestamp": _stamp(now)})
        self._told[name].count = count

    def _event(self, name: str, about: Object, sentence: Sentence, now: datetime) -> Object:
        metadata = about["metadata"]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "type": "Normal" if sentence.reason in _NORMAL else "Warning",
            "reason": sentence.reason,
            "message": sentence.message[:_LONGEST_MESSAGE],
            "count": 1,
            "firstTimestamp": _stamp(now),
            "lastTimestamp": _stamp(now),
            "source": {"component": "headrace", "host": self.instance},
            "reportingComponent": "headrace",
            "reportingInstance": self.instance,
        }


def _name(about: Object, sentence: Sentence) -> str:
    """The same for the same sentence about the same object, whoever tells it."""
    metadata = about["metadata"]
    digest = hashlib.sha256(f"{metadata['uid']}|{sentence.reason}|{sentence.message}".encode())
    return f"{metadata['name']}.{digest.hexdigest()[:16]}"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
