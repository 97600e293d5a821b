from pathlib import Path

from headrace.local.forgetting import forget
from headrace.local.layout import Layout
from headrace_jobs.store import LINEAGES, open_store
from headrace_jobs.store.savepoints import SAVEPOINTS
from tests.unit.store.savepoints.checkpoints import FakeQuery

JOB = "default/clicks"


def test_the_runs_go_and_savepoints_stay_and_how_far_the_batches_went(tmp_path: Path):
    layout = Layout(tmp_path)
    store = open_store(str(layout.store_root))
    FakeQuery(store=store, run=f"{JOB}/uid/run-1").batches(3)
    store.put(f"{JOB}/{SAVEPOINTS}/nightly/manifest.json", b"{}")
    forget(layout)
    assert store.children(JOB) == [f"{LINEAGES}/", f"{SAVEPOINTS}/"]
    assert len(list(store.list(f"{JOB}/{LINEAGES}/"))) == 1


def test_a_broken_checkpoint_is_no_hindrance(tmp_path: Path):
    layout = Layout(tmp_path)
    store = open_store(str(layout.store_root))
    FakeQuery(store=store, run=f"{JOB}/uid/run-1").batches(3)
    store.put(f"{JOB}/uid/run-1/queries/orders/metadata", b"nonsense")
    forget(layout)
    assert store.children(JOB) == []
