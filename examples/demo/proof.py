"""Compares the generator's own log with the files of the sink. Knows nothing of Headrace or Spark.

rows in     orders that the generator wrote and the job had to count
rows out    orders that the results say were counted
lost        wrote, had to be counted, and were not
repeated    counted more than once
wrong       windows whose count or revenue is not what their orders add up to
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse


@dataclass(frozen=True)
class Verdict:
    rows_in: int
    rows_out: int
    windows: int
    late_counted: int
    too_late_left_out: int
    lost: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.rows_in > 0 and not (self.lost or self.repeated or self.wrong)


def committed_files(results: Path) -> list[Path]:
    """The files that Spark's sink log calls committed; what a failed batch left behind does not count."""
    log = results / "_spark_metadata"
    entries: dict[str, Path] = {}
    for path in log.iterdir():
        if path.name.startswith("."):
            continue
        for line in path.read_text().splitlines()[1:]:  # the first line is the version
            entry = json.loads(line)
            file = Path(unquote(urlparse(entry["path"]).path))
            entries[file.name] = results / file.name
    return sorted(entries.values())


def judge(generator_log: Path, results: Path) -> Verdict:
    orders = [json.loads(line) for line in generator_log.read_text().splitlines()]
    by_id = {order["id"]: order for order in orders}
    must_count = {order["id"] for order in orders if order["kind"] in ("on time", "late")}
    counted: Counter[int] = Counter()
    wrong: list[str] = []
    rows = [json.loads(line) for file in committed_files(results) for line in file.read_text().splitlines()]
    for row in rows:
        ids = row["order_ids"]
        counted.update(ids)
        unknown = [number for number in ids if number not in by_id]
        revenue = sum(by_id[number]["amount_cents"] for number in ids if number in by_id)
        if unknown or row["orders"] != len(ids) or row["revenue_cents"] != revenue:
            wrong.append(row["start"])
    kinds = Counter(by_id[number]["kind"] for number in counted if number in by_id)
    too_late = sum(order["kind"] == "too late" for order in orders)
    return Verdict(
        rows_in=len(must_count),
        rows_out=sum(counted.values()) - kinds["too late"],
        windows=len(rows),
        late_counted=kinds["late"],
        too_late_left_out=too_late - kinds["too late"],
        lost=sorted(must_count - counted.keys()),
        repeated=sorted(number for number, times in counted.items() if times > 1),
        wrong=wrong,
    )


def report(verdict: Verdict) -> str:
    def some(numbers: list[int]) -> str:
        return f"   e.g. order {numbers[0]}" if numbers else ""

    return "\n".join(
        [
            f"  rows in      {verdict.rows_in:>7,}   by the generator's own log",
            f"  rows out     {verdict.rows_out:>7,}   in {verdict.windows} windows of the sink's files",
            f"  lost         {len(verdict.lost):>7,}{some(verdict.lost)}",
            f"  repeated     {len(verdict.repeated):>7,}{some(verdict.repeated)}",
            f"  wrong sums   {len(verdict.wrong):>7,}"
            + (f"   e.g. window {verdict.wrong[0]}" if verdict.wrong else ""),
            f"  late         {verdict.late_counted:>7,}   counted, because they came within the watermark",
            f"  too late     {verdict.too_late_left_out:>7,}   left out, as the watermark says",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("generator_log", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    verdict = judge(args.generator_log, args.results)
    print(json.dumps({**asdict(verdict), "holds": verdict.holds}) if args.json else report(verdict))
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    sys.exit(main())
