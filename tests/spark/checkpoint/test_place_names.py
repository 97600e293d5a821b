"""One name of a directory, read by Hadoop and by Python: both must mean the same place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace_jobs.store import directory_url, last_batches, newest_claim, open_store
from tests.spark.checkpoint.jvmfiles import JvmFiles
from tests.spark.checkpoint.places import Place


@pytest.mark.parametrize("name", ["my job é", "100%", "a%20b", "what?", "#1"])
def test_what_the_jvm_writes_is_where_python_looks(name: str, gateway: Any, tmp_path: Path) -> None:
    url = directory_url(tmp_path / name)
    store = open_store(url)
    driver = JvmFiles(gateway, Place(uri=url, store=store), run="run-1", attempt=1)
    driver.claim(1)
    for entry in ("offsets/0", "commits/0"):
        driver.create(f"run-1/queries/q/{entry}")
    assert newest_claim(store, 1) == 1
    assert last_batches(store, 1) == {"q": (0, 0)}
    assert [each.name for each in tmp_path.iterdir()] == [name]
