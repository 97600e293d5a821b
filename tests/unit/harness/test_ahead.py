"""How the state is copied while two drivers wait for the handover."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.harness import ahead as module
from headrace_jobs.harness.ahead import CopyAhead
from headrace_jobs.store import Store, StoreError, open_store
from tests.unit.store.savepoints.checkpoints import FakeQuery


@dataclass
class Copies:
    """Stands for the copying itself: each takes as long as is said."""

    seconds: Iterator[float]
    now: float = 0.0
    took: list[float] = field(default_factory=list)

    def __call__(self, *_: Any, **_more: Any) -> int:
        self.took.append(next(self.seconds))
        self.now += self.took[-1]
        return 1


def a_copier(monkeypatch: pytest.MonkeyPatch, *seconds: float) -> tuple[CopyAhead, Copies]:
    copies = Copies(iter(seconds))
    monkeypatch.setattr(module, "copy_ahead", copies)
    return CopyAhead(None, 3, 4, go_on=lambda: True, clock=lambda: copies.now), copies  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "copied"),
    [
        pytest.param([0.5], [0.5], id="little state: once"),
        pytest.param([120, 20, 4, 0.8], [120, 20, 4, 0.8], id="each time what came meanwhile"),
        pytest.param([120, 100, 90], [120, 100], id="the store is no faster than the incumbent"),
    ],
)
def test_it_copies_until_little_is_left_or_it_gets_no_less(monkeypatch, seconds, copied):
    copier, copies = a_copier(monkeypatch, *seconds)
    copier.catch_up()
    assert copies.took == copied


def test_afterwards_it_takes_a_quarter_of_the_time(monkeypatch):
    copier, copies = a_copier(monkeypatch, 0.5, 3, 0.1)
    copier.catch_up()
    moments = []
    while len(copies.took) < 3:
        copies.now += 0.5
        before = len(copies.took)
        now = copies.now
        copier.copy_if_due()
        if len(copies.took) > before:
            moments.append(now)
    # Half a second, then a look within two more; three seconds, then twelve of rest.
    assert moments == [3.0, 18.5]


def test_the_handover_ends_it_at_the_next_file(tmp_path: Path):
    store = open_store(str(tmp_path))
    FakeQuery(store=store, run="run-3").batches(6)
    asked: list[None] = []
    copier = CopyAhead(store, 3, 4, go_on=lambda: len(asked.append(None) or asked) <= 5)
    copier.catch_up()
    assert len(list(store.list("run-4/"))) == 5


def test_what_is_there_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = open_store(str(tmp_path))
    query = FakeQuery(store=store, run="run-3").batches(6)
    listed: list[str] = []
    original = store.list
    monkeypatch.setattr(store, "list", lambda prefix="": listed.append(prefix) or original(prefix))
    now = [0.0]
    copier = CopyAhead(store, 3, 4, go_on=lambda: True, clock=lambda: now[0])
    copier.catch_up()
    query.batches(1)
    now[0] = 1.5
    copier.copy_if_due()
    assert listed.count("run-4/queries/") == 1
    assert _logs(store, "run-4") == _logs(store, "run-3")


def _logs(store: Store, run: str) -> set[str]:
    keys = (entry.key.removeprefix(f"{run}/") for entry in store.list(f"{run}/queries/orders/"))
    return {key for key in keys if "/commits/" in key or "/offsets/" in key}


def test_a_store_that_fails_is_a_warning(monkeypatch, caplog):
    def fail(*_: Any, **_more: Any) -> int:
        raise StoreError("slow down")

    copier, _ = a_copier(monkeypatch)
    monkeypatch.setattr(module, "copy_ahead", fail)
    with caplog.at_level(logging.WARNING, logger="headrace"):
        copier.catch_up()
    assert "could not be copied ahead: slow down" in caplog.text
