"""Writes numbered orders as JSON files, and a log of its own of every order it wrote.

Event time runs with the wall clock. Some orders come late, by up to 8 seconds: the job waits for 10, so each
of them must be counted. A few come more than a minute late: the job must leave them out. When the stop file
appears, one last order an hour ahead pushes the watermark on, so that every window closes.
"""

import argparse
import json
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

PRODUCTS = ("beans", "filter", "grinder", "kettle", "mug")
FILE_EVERY_SECONDS = 0.5
ORDERS_PER_FILE = 30
LATE_BY_AT_MOST = timedelta(seconds=8)
TOO_LATE_BY = timedelta(seconds=90)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--stop-file", type=Path, required=True)
    parser.add_argument(
        "--too-late-file", type=Path, required=True, help="write orders that are too late once it exists"
    )
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    args.orders.mkdir(parents=True, exist_ok=True)
    dice = random.Random(args.seed)
    with args.log.open("a") as log:
        number, file_number = 0, 0
        while not args.stop_file.exists():
            orders = []
            for _ in range(ORDERS_PER_FILE):
                number += 1
                too_late = args.too_late_file.exists() and dice.random() < 0.02
                orders.append(make_order(number, dice, too_late=too_late))
            file_number += 1
            write_file(args.orders, file_number, orders, log)
            time.sleep(FILE_EVERY_SECONDS)
        last = {**make_order(number + 1, dice, too_late=False), "kind": "flush"}
        last["ordered_at"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        write_file(args.orders, file_number + 1, [last], log)


def make_order(number: int, dice: random.Random, *, too_late: bool) -> dict[str, object]:
    now = datetime.now(UTC)
    kind, moment = "on time", now
    if too_late:
        kind, moment = "too late", now - TOO_LATE_BY
    elif dice.random() < 0.1:
        kind, moment = "late", now - LATE_BY_AT_MOST * dice.random()
    return {
        "id": number,
        "product": dice.choice(PRODUCTS),
        "amount_cents": dice.randrange(300, 30_000),
        "ordered_at": moment.isoformat(),
        "kind": kind,
    }


def write_file(directory: Path, file_number: int, orders: list[dict[str, object]], log) -> None:
    # Logged first: an order that is in a file is always in the log.
    log.writelines(json.dumps(order) + "\n" for order in orders)
    log.flush()
    name = f"orders-{file_number:06d}.json"
    hidden = directory / f".{name}"
    hidden.write_text("".join(json.dumps(order) + "\n" for order in orders))
    hidden.rename(directory / name)  # whole or not at all


if __name__ == "__main__":
    main()
