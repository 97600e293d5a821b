"""That a test run cannot end well before its end."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_run_that_is_cut_has_failed(tmp_path: Path) -> None:
    (tmp_path / "test_cut.py").write_text("import os\ndef test_cut():\n    os._exit(0)\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 70, done.stdout
    assert "os._exit(0) in the middle of a test run" in done.stderr
