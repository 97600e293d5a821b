"""Spark reads the state of checkpoints: `python -m tests.spark.savepoints.reader SPEC URL…`.

Prints one JSON line per checkpoint: the entries per store, or the error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from headrace_jobs.store.savepoints.reading import read_state
from tests.spark.checkpoint.driver import Spec, session


def main(path: str, urls: list[str]) -> None:
    spark = session(Spec(**json.loads(Path(path).read_text())))
    for url in urls:
        try:
            answer = {"stores": read_state(spark, url)}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)  # noqa: T201
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
