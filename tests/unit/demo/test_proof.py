"""The proof of `make demo` sees what is wrong: one loss, one duplicate, one wrong sum."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROOF = Path(__file__).parents[3] / "examples" / "demo" / "proof.py"


class Sink:
    """Results as Spark's JSON file sink writes them: data files, and a log of those that count."""

    def __init__(self, home: Path) -> None:
        self.log, self.results = home / "generator.log", home / "results"
        (self.results / "_spark_metadata").mkdir(parents=True)
        orders = [
            {"id": n, "amount_cents": n * 100, "kind": "late" if n % 5 == 0 else "on time"}
            for n in range(1, 21)
        ]
        orders.append({"id": 21, "amount_cents": 5, "kind": "too late"})
        orders.append({"id": 22, "amount_cents": 5, "kind": "flush"})
        self.log.write_text("".join(json.dumps(order) + "\n" for order in orders))
        self.batch(0, [self.window("00", range(1, 8)), self.window("05", range(8, 15))])
        self.batch(1, [self.window("10", range(15, 21))])

    def window(self, start: str, ids) -> dict:
        ids = list(ids)
        return {"start": start, "orders": len(ids), "revenue_cents": sum(ids) * 100, "order_ids": ids}

    def batch(self, number: int, windows: list[dict]) -> None:
        name = f"part-{number}.json"
        (self.results / name).write_text("".join(json.dumps(window) + "\n" for window in windows))
        entry = {"path": f"file://{self.results}/{name}", "action": "add"}
        (self.results / "_spark_metadata" / str(number)).write_text("v1\n" + json.dumps(entry))

    def verdict(self) -> dict:
        command = [sys.executable, PROOF, self.log, self.results, "--json"]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        found = json.loads(outcome.stdout)
        assert (outcome.returncode == 0) is found["holds"]
        return found


@pytest.fixture
def sink(tmp_path):
    return Sink(tmp_path)


def test_it_holds_when_every_order_is_counted_once(sink):
    verdict = sink.verdict()
    assert verdict["holds"]
    assert (verdict["rows_in"], verdict["rows_out"], verdict["windows"]) == (20, 20, 3)
    assert (verdict["late_counted"], verdict["too_late_left_out"]) == (4, 1)


def test_one_lost_order_is_reported(sink):
    sink.batch(1, [sink.window("10", [15, 16, 18, 19, 20])])
    verdict = sink.verdict()
    assert not verdict["holds"]
    assert verdict["lost"] == [17]


def test_one_repeated_order_is_reported(sink):
    sink.batch(2, [sink.window("15", [17])])
    verdict = sink.verdict()
    assert not verdict["holds"]
    assert verdict["repeated"] == [17]


def test_a_wrong_sum_is_reported(sink):
    sink.batch(1, [{**sink.window("10", range(15, 21)), "revenue_cents": 1}])
    verdict = sink.verdict()
    assert not verdict["holds"]
    assert verdict["wrong"] == ["10"]


def test_files_of_a_failed_batch_do_not_count(sink):
    (sink.results / "part-9.json").write_text(json.dumps(sink.window("10", [17])) + "\n")
    assert sink.verdict()["holds"]


def test_no_orders_at_all_prove_nothing(sink):
    sink.log.write_text("")
    assert not sink.verdict()["holds"]
