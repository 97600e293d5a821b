"""`make demo` as it stands, and what its proof says of results that were tampered with afterwards."""

import json
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[3] / "examples" / "demo"


def proof(work: Path) -> dict:
    command = [sys.executable, DEMO / "proof.py", work / "generator.log", work / "results", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def test_the_demo_proves_itself_and_the_proof_can_fail(tmp_path):
    work = tmp_path / "demo"
    ran = subprocess.run(
        [sys.executable, DEMO / "demo.py", "--work-dir", work],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Nothing lost, nothing repeated." in ran.stdout
    assert "run 2: the code changed" in ran.stdout
    honest = proof(work)
    assert honest["rows_in"] == honest["rows_out"] > 500
    assert honest["late_counted"] > 0

    rows = [path for path in sorted((work / "results").glob("part-*.json")) if path.read_text()]
    lines = rows[0].read_text().splitlines()
    window = json.loads(lines[0])
    taken = window["order_ids"][0]
    window["order_ids"] = window["order_ids"][1:]
    rows[0].write_text("\n".join([json.dumps(window), *lines[1:]]) + "\n")
    assert proof(work)["lost"] == [taken]

    window["order_ids"] = [taken, taken, *window["order_ids"]]
    rows[0].write_text("\n".join([json.dumps(window), *lines[1:]]) + "\n")
    assert proof(work)["repeated"] == [taken]
