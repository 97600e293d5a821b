"""What a StreamJob costs the operator: many at once on a real API server, then a minute of peace.

etcd and kube-apiserver run on loopback, the operator as a process of its own under the chart's own rights.
No kubelet and no controller runs, so every driver pod stays pending. Each size gets a fresh API server and a
fresh operator. The named figures are those of the largest size; the others end in `.n<jobs>`.

    submit.cpu_ms_per_job   CPU of the operator from before the first job until the last driver pod exists;
                            each job then has its ConfigMaps, Secret, Service and a status, which is checked
    submit.p50_s, p99_s     from before a job's creation to its driver pod, all jobs created in one burst
    submit.jobs_per_min     jobs by the time from the first job to the last driver pod
    submit.writes_per_job   as the API server counts them, until nothing is written any more
    idle.writes_per_min     likewise, in a minute after that; the Lease left out
    idle.cpu_pct            of one core, in that minute
    idle.rss_mb_<jobs>      resident memory at its end

On the error output: the writes by kind, and the CPU of etcd and kube-apiserver, which share the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.submit_cluster import (  # noqa: E402
    PodWatch,
    RunningOperator,
    Server,
    cpu_seconds_of,
    prepared_server,
    running_operator,
    submit,
    wait_until_quiet,
)

RESULTS = ROOT / "bench/results/submit.json"
SIZES = (300, 1000)
GOALS = {
    "submit.cpu_ms_per_job": "<= 30",
    "submit.jobs_per_min": ">= 2000",
    "idle.writes_per_min": "<= 0",
    "idle.rss_mb_1000": "<= 200",
}
WAIT_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    jobs: int
    cpu_seconds: float
    delays_seconds: list[float]
    wall_seconds: float
    writes: Counter[str]
    server_cpu_seconds: float
    idle_writes: Counter[str]
    idle_seconds: float
    idle_cpu_seconds: float
    rss_mb: float

    def figures(self) -> list[tuple[str, float, str]]:
        cuts = statistics.quantiles(self.delays_seconds, n=100, method="inclusive")
        per_minute = 60 / self.idle_seconds
        return [
            ("submit.cpu_ms_per_job", 1000 * self.cpu_seconds / self.jobs, "ms"),
            ("submit.p50_s", cuts[49], "s"),
            ("submit.p99_s", cuts[98], "s"),
            ("submit.jobs_per_min", 60 * self.jobs / self.wall_seconds, "1/min"),
            ("submit.writes_per_job", self.writes.total() / self.jobs, ""),
            ("idle.writes_per_min", self.idle_writes.total() * per_minute, "1/min"),
            ("idle.cpu_pct", 100 * self.idle_cpu_seconds / self.idle_seconds, "%"),
            (f"idle.rss_mb_{self.jobs}", self.rss_mb, "MB"),
        ]

    def explain(self) -> None:
        kinds = ", ".join(f"{kind} {count / self.jobs:.2f}" for kind, count in self.writes.most_common())
        say(f"{self.jobs} jobs; writes per job: {kinds}")
        say(f"etcd and kube-apiserver: {1000 * self.server_cpu_seconds / self.jobs:.1f} ms CPU per job")
        if self.idle_writes:
            say(f"written in the idle time: {dict(self.idle_writes)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=list(SIZES), help="sizes, each by itself")
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    sizes = sorted(arguments.jobs)
    figures: list[dict[str, Any]] = []
    for jobs in sizes:
        measured = measure(jobs, idle_seconds=arguments.idle_seconds)
        measured.explain()
        named = jobs == sizes[-1]
        figures += [figure(*one, suffix="" if named else f".n{jobs}") for one in measured.figures()]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"sizes": sizes, "figures": figures}, indent=1) + "\n")


def figure(name: str, value: float, unit: str, *, suffix: str) -> dict[str, Any]:
    # What a figure of memory is about is in its name already.
    shown = name if name.startswith("idle.rss_mb") else name + suffix
    found = {"figure": shown, "value": round(value, 2), "unit": unit, "goal": GOALS.get(name)}
    print(json.dumps(found), flush=True)
    return found


def measure(jobs: int, *, idle_seconds: float) -> Measured:
    with (
        tempfile.TemporaryDirectory(prefix="headrace-bench-") as scratch,
        prepared_server(Path(scratch)) as server,
        running_operator(server, Path(scratch)) as operator,
        PodWatch(server) as pods,
    ):
        operator.wait_at_rest(seconds=WAIT_SECONDS)
        writes, cpu, server_cpu = server.writes(), operator.cpu_seconds(), cpu_of_others(operator)
        created = submit(server, jobs)
        seen = pods.wait_for(jobs, seconds=WAIT_SECONDS)
        used = operator.cpu_seconds() - cpu
        server_used = cpu_of_others(operator) - server_cpu
        server.check_complete(jobs)
        wait_until_quiet(server, seconds=WAIT_SECONDS)
        written = server.writes() - writes
        # The bench itself created them.
        written["POST streamjobs"] -= jobs
        idle = measure_idle(server, operator, idle_seconds)
    return Measured(
        jobs=jobs,
        cpu_seconds=used,
        delays_seconds=[seen[name] - created[name] for name in created],
        wall_seconds=max(seen.values()) - min(created.values()),
        writes=+written,
        server_cpu_seconds=server_used,
        **idle,
    )


def measure_idle(server: Server, operator: RunningOperator, seconds: float) -> dict[str, Any]:
    writes, cpu, began = server.writes(), operator.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return {
        "idle_writes": server.writes() - writes,
        "idle_seconds": time.monotonic() - began,
        "idle_cpu_seconds": operator.cpu_seconds() - cpu,
        "rss_mb": operator.rss_mb(),
    }


def cpu_of_others(operator: RunningOperator) -> float:
    """Of the processes that this one started, but for the operator: etcd and kube-apiserver."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return sum(cpu_seconds_of(int(pid)) for pid in children if int(pid) != operator.process.pid)


def say(line: str) -> None:
    print(f"# {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
