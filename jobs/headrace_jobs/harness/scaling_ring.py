"""What the autoscaler decided and remembers, kept in the store beside the runs: `_scaling/ring.json`.

The operator touches no store: it hands its decisions to the driver's agent, and asks for them when it has
forgotten them itself. The ring is bounded; what is oldest goes.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

from headrace_jobs.harness.run_store import store_of
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.store import StoreError
from headrace_jobs.store.errors import NotFoundError

log = logging.getLogger("headrace")

KEY = "_scaling/ring.json"
# Decisions that changed something or their reason; and looks, one a minute: two days.
DECISIONS_KEPT = 200
LOOKS_KEPT = 2880
_RETRY_SECONDS = 60.0


def empty() -> dict[str, Any]:
    return {"memory": None, "newest": None, "decisions": [], "looks": []}


def with_news(ring: dict[str, Any], news: dict[str, Any]) -> dict[str, Any]:
    """The ring with what is new. Raises ValueError. What was told before, by its time, is told once."""
    lists = {"decisions": DECISIONS_KEPT, "looks": LOOKS_KEPT}
    for name in lists:
        if not isinstance(news.get(name, []), list):
            raise ValueError(f"{name} must be a list")  # noqa: TRY004 - of what was sent, not of an argument
    kept = {
        name: (ring[name] + [one for one in news.get(name, []) if one not in ring[name][-50:]])[-most:]
        for name, most in lists.items()
    }
    return {
        "memory": news.get("memory") or ring["memory"],
        # The newest decision also where it says what the one before it said: with today's numbers.
        "newest": news.get("newest") or ring.get("newest"),
        **kept,
    }


class ScalingRing:
    """Read once, written when something new has come: by one thread, so that nobody waits for the store."""

    def __init__(self, run_file: RunFile) -> None:
        self._run_file = run_file
        self._lock = threading.Lock()
        self._ring = empty()
        self._read = False
        self._changed = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._work, name="headrace-scaling", daemon=True).start()

    def content(self) -> dict[str, Any] | None:
        """None before the store has been read: empty would mean that there was nothing."""
        with self._lock:
            return self._ring if self._read else None

    def keep(self, news: dict[str, Any]) -> None:
        with self._lock:
            self._ring = with_news(self._ring, news)
        # Numbers alone are told every minute to whoever asks: no reason to write.
        if news.keys() - {"newest"}:
            self._changed.set()

    def read_again(self) -> None:
        """Another driver has written there since: of a candidate that takes over, the one before it."""
        with self._lock:
            self._ring, self._read = empty(), False
        self._changed.set()

    def _work(self) -> None:
        self._read_in_the_end()
        while True:
            self._changed.wait()
            self._changed.clear()
            self._read_in_the_end()
            with self._lock:
                content = json.dumps(self._ring)
            try:
                store_of(self._run_file).put(KEY, content.encode())
            except StoreError as error:
                log.warning("the autoscaler's decisions cannot be kept: %s", error)
                time.sleep(_RETRY_SECONDS)
                self._changed.set()

    def _read_in_the_end(self) -> None:
        while not self._read and not self._read_once():
            time.sleep(_RETRY_SECONDS)

    def _read_once(self) -> bool:
        try:
            before = json.loads(store_of(self._run_file).get(KEY))
            known = with_news(empty(), before)
        except NotFoundError:
            known = empty()
        except StoreError as error:
            log.warning("the autoscaler's decisions cannot be read: %s", error)
            return False
        except (ValueError, TypeError, AttributeError):
            known = empty()  # of another version, or not ours
        with self._lock:
            # Whoever was quicker than the store comes after what lies there.
            self._ring, self._read = with_news(known, self._ring), True
        return True
