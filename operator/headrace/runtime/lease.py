"""Of several operators one acts: the holder of a Lease.

The Lease keeps two healthy operators apart. It cannot stop one that was paused and wakes: that is what the
preconditions of every write are for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from headrace.kube.client import Api, Object
from headrace.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from headrace.kube.resources import LEASES

log = logging.getLogger("headrace")


@dataclass(frozen=True)
class LeaseTiming:
    lasts_seconds: int = 20
    renewed_every_seconds: float = 5.0
    # The holder stops this much before the others may begin.
    margin_seconds: float = 3.0


@dataclass(kw_only=True)
class LeaderLease:
    api: Api
    namespace: str
    name: str
    identity: str
    now: Callable[[], datetime]
    # Never jumps: what is measured is how long ago, not when.
    clock: Callable[[], float]
    timing: LeaseTiming = LeaseTiming()
    _valid_until: float = 0.0
    _answered_at: float = float("-inf")
    _seen: str | None = None
    _seen_at: float = 0.0

    def leads(self) -> bool:
        return self.clock() < self._valid_until

    def silence_seconds(self) -> float:
        """Since the API server last let us look at the Lease; for ever, if it never did."""
        return self.clock() - self._answered_at

    async def renew(self) -> bool:
        """Takes the Lease if nobody has it, keeps it if we do. Answers whether we lead."""
        began = self.clock()
        try:
            taken = await self._take_or_keep()
        except ApiError as error:
            # Not knowing changes nothing: what we hold, we hold until it ends.
            log.warning("the lease could not be renewed: %s", error)
            return self.leads()
        self._answered_at = began
        if taken:
            self._valid_until = began + self.timing.lasts_seconds - self.timing.margin_seconds
        return self.leads()

    async def release(self) -> None:
        """So that the next one need not wait."""
        if not self.leads():
            return
        self._valid_until = 0.0
        lease = await self.api.get(LEASES, self.namespace, self.name)
        if lease["spec"].get("holderIdentity") == self.identity:
            lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
            await self.api.replace(LEASES, self.namespace, lease)

    async def _take_or_keep(self) -> bool:
        try:
            lease = await self.api.get(LEASES, self.namespace, self.name)
        except NotFound:
            return await self._create()
        spec = lease["spec"]
        holder = spec.get("holderIdentity")
        if holder != self.identity and holder and not self._has_ended(lease):
            return False
        if holder != self.identity:
            spec |= {
                "acquireTime": self._stamp(),
                "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1,
            }
        spec |= {
            "holderIdentity": self.identity,
            "renewTime": self._stamp(),
            "leaseDurationSeconds": self.timing.lasts_seconds,
        }
        try:
            await self.api.replace(LEASES, self.namespace, lease)
        except Conflict:
            return False  # another was faster; or our own answer got lost, and the next time shows it
        return True

    def _has_ended(self, lease: Object) -> bool:
        """By our own clock, since we last saw it change: the holder's calendar may be anything."""
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen:
            self._seen, self._seen_at = version, self.clock()
        lasts = lease["spec"].get("leaseDurationSeconds") or self.timing.lasts_seconds
        return self.clock() - self._seen_at > lasts

    async def _create(self) -> bool:
        stamp = self._stamp()
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "holderIdentity": self.identity,
                "acquireTime": stamp,
                "renewTime": stamp,
                "leaseDurationSeconds": self.timing.lasts_seconds,
                "leaseTransitions": 0,
            },
        }
        try:
            await self.api.create(LEASES, self.namespace, lease)
        except AlreadyExists:
            return False
        return True

    def _stamp(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
