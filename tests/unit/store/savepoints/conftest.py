from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace_jobs.store import Store, open_store


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small files: what survives a power cut is not asked here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "store"))
