"""The store as keepers of savepoints find it: claims, manifests, tombstones. It fails on demand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.sim.kube.fake_api import FakeApi, Object, Place


@dataclass
class SavepointStore:
    api: FakeApi
    # What lies in the store, by path: what the manifest says.
    saved: dict[str, Object] = field(default_factory=dict)
    tombstones: set[str] = field(default_factory=set)
    # Every task that was carried out: (task, path).
    done: list[tuple[str, str]] = field(default_factory=list)
    # What a keeper says instead of doing it; one without a reason dies without a word.
    fails: Object | None = None
    # Pods that are made stay as they are.
    frozen: bool = False
    batch: int = 41
    # Whether what savepoints have left behind was removed.
    collected: bool = False
    damaged: set[str] = field(default_factory=set)
    # How far the keeper says that it is with its copy.
    percent: int | None = None

    async def copied_percent(self, ip: str, *, owner: str) -> int | None:
        assert ip and owner
        return self.percent

    def keeper_works(self, place: Place, pod: Object) -> None:
        """Begins, then ends: between the two anything may happen."""
        if self.frozen:
            return
        phase = pod.get("status", {}).get("phase")
        if phase is None:
            self.api.set(place, {"status": {"phase": "Running", "podIP": "10.0.0.9"}})
        elif phase == "Running" and pod["metadata"].get("deletionTimestamp"):
            self.api.remove(place)
        elif phase == "Running":
            self._end(place, self.fails if self.fails is not None else self._work(pod))

    def collector_works(self, place: Place, pod: Object) -> None:
        if pod.get("status") is None and not self.frozen:
            command = pod["spec"]["containers"][0]["command"]
            if "savepoints" in command:
                self._end(place, self.fails if self.fails is not None else self._list(_flags(pod)["--store"]))
                return
            dry = "--dry-run" in command
            found = {"objects": 0 if self.collected else 7, "bytes": 0 if self.collected else 900}
            self.collected |= not dry and self.fails is None
            message = f"1 orphans {'would be removed' if dry else 'removed'}"
            named = {flag.partition("=")[2] for flag in command if flag.startswith("--known=")}
            nameless = [path for path in self.saved if path.rpartition("/")[2] not in named]
            whole = [{"path": "_savepoints/" + path.rpartition("/")[2]} for path in nameless]
            done = {"reason": "Completed", "message": message, **found, "savepoints": whole}
            self._end(place, self.fails if self.fails is not None else done)

    def _list(self, below: str) -> Object:
        found = [path.removeprefix(f"{below}/") for path in self.saved if path.startswith(f"{below}/")]
        lines = [
            {"path": path, "job": "shop/old", "takenAt": "2026-01-01T00:00:00+00:00", "batches": {"q": 41}}
            for path in found
        ]
        return {"reason": "Completed", "message": f"{len(lines)} savepoints", "savepoints": lines}

    def _work(self, pod: Object) -> Object:
        flags = _flags(pod)
        path = f"{flags['--store']}/{flags['--savepoint']}"
        task = pod["metadata"]["labels"]["headrace.dev/task"]
        match task:
            case "take":
                words = self._take(path, flags)
            case "verify" | "check":
                words = self._verify(path, flags["--level"])
            case _:
                self.saved.pop(path, None)
                self.tombstones.add(path)
                words = {"reason": "Completed", "message": ""}
        if words["reason"] == "Completed":
            self.done.append((task, path))
        return words

    def _take(self, path: str, flags: dict[str, str]) -> Object:
        if path in self.tombstones:
            return {"reason": "SavepointFailed", "message": "it is being removed"}
        there = self.saved.setdefault(path, {**self._contents(flags["--from"]), "owner": flags["--owner"]})
        if there["owner"] != flags["--owner"]:
            return {"reason": "SavepointFailed", "message": "of another owner"}
        return {"reason": "Completed", "message": "", "savepoint": there}

    def _verify(self, path: str, level: str) -> Object:
        if path not in self.saved:
            return {"reason": "SavepointFailed", "message": f"there is no savepoint at {path}"}
        if path in self.damaged:
            found = {"level": "None", "message": "queries/q/commits/41 is missing"}
            return {"reason": "SavepointDamaged", "message": found["message"], "verified": found}
        found = {"level": level, "message": "all there"}
        return {"reason": "Completed", "message": "", "verified": found, "savepoint": self.saved[path]}

    def _contents(self, run: str) -> Object:
        query = {
            "name": "q",
            "lineage": "l-1",
            "batch": self.batch,
            "pending": False,
            "watermark_ms": 1767225600000,
            "offsets": {"0": {"clicks": {"0": 7}}},
            "partitions": 2,
            "state_format": 2,
        }
        return {"run": run, "queries": [query], "objects": 12, "bytes": 3_500_000, "spark_version": "4.2.1"}

    def import_from_elsewhere(self, path: str) -> None:
        self.saved[path] = {**self._contents("elsewhere/run-3"), "owner": "nobody"}

    def _end(self, place: Place, words: Object) -> None:
        good = words.get("reason") == "Completed"
        said = json.dumps(words) if words.get("reason") else words.get("message", "")
        terminated: dict[str, Any] = {
            "exitCode": 0 if good else 66,
            "message": said,
            "finishedAt": self.api.stamp(),
        }
        state = {"name": "keeper", "state": {"terminated": terminated}}
        phase = "Succeeded" if good else "Failed"
        self.api.set(place, {"status": {"phase": phase, "containerStatuses": [state]}})


def _flags(pod: Object) -> dict[str, str]:
    command = pod["spec"]["containers"][0]["command"]
    return dict(flag.split("=", 1) for flag in command if flag.startswith("--") and "=" in flag)
