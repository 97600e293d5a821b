"""How long the project's own Kubernetes takes: `make bench-cluster`, as root; `COLD=1`: also a cold start.

Prints one JSON line per figure and writes bench/results/cluster.json, where a cold start that was measured
before stays. A cold start compiles everything again, in caches of its own: some 15 CPU-minutes.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results/cluster.json"
GOALS = {
    "cluster.warm_s": 60.0,
    "cluster.cold_s": 1800.0,
    "cluster.cold_cpu_s": 900.0,
    "images.spark_mb": 1400.0,
}
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", action="store_true", help="also a start with nothing compiled")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.stderr.write("bench/cluster.py measures the native cluster, which needs root: left out\n")
        return
    figures = [figure("cluster.warm_s", warm_start_seconds(), "s")]
    figures.append(figure("images.spark_mb", spark_image_megabytes(), "MB"))
    if arguments.cold:
        wall, cpu = cold_start_seconds()
        figures += [figure("cluster.cold_s", wall, "s"), figure("cluster.cold_cpu_s", cpu, "s")]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    before = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    RESULTS.write_text("".join(json.dumps(one) + "\n" for one in merged(map(json.loads, before), figures)))


def merged(before: Iterable[dict[str, Any]], now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was not measured this time stays as it was."""
    measured = {one["figure"] for one in now}
    return [*now, *(one for one in before if one["figure"] not in measured)]


def figure(name: str, value: float, unit: str) -> dict[str, Any]:
    found = {"figure": name, "value": round(value, 1), "unit": unit, "goal": GOALS.get(name)}
    print(json.dumps(found), flush=True)
    return found


def warm_start_seconds() -> float:
    """From nothing running to Ready nodes and DNS, with everything compiled."""
    cluster("down")
    cluster("up")
    rounds: list[float] = []
    for _ in range(ROUNDS):
        cluster("down")
        began = time.monotonic()
        cluster("up")
        rounds.append(time.monotonic() - began)
    cluster("down")
    return statistics.median(rounds)


def cold_start_seconds() -> tuple[float, float]:
    """With no compiled program and an empty compiler cache. The modules' sources are there already.

    The CPU is that of compiling and starting; what the cluster's own programs use until they are ready, one
    or two percent of it, is not in it.
    """
    with tempfile.TemporaryDirectory() as empty:
        environment = {"XDG_CACHE_HOME": empty, "GOCACHE": f"{empty}/go-build"}
        began, cpu_before = time.monotonic(), cpu_seconds_of_children()
        cluster("up", environment)
        wall, cpu = time.monotonic() - began, cpu_seconds_of_children() - cpu_before
        cluster("down", environment)
    return wall, cpu


def spark_image_megabytes() -> float:
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "spark.tar"
        run([sys.executable, "images/build.py", "spark", "--archive", str(archive)], {})
        return archive.stat().st_size / 1e6


def cluster(command: str, environment: dict[str, str] | None = None) -> None:
    run([sys.executable, "-m", "tests.cluster", command], environment or {})


def run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(
        command, cwd=ROOT, check=True, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    )


def cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
