"""What a driver works on right now: of a candidate first the rehearsal, then, perhaps, the run itself."""

from __future__ import annotations

import json
import os
import time

from headrace_jobs import run
from headrace_jobs.harness.runfile import RunFile
from headrace_jobs.harness.view import iso


class Assignment:
    """Holds the run file that counts. All who need it ask here, so that an activation changes it for all."""

    def __init__(self, run_file: RunFile) -> None:
        self.run_file = run_file

    @property
    def rehearsing(self) -> bool:
        return self.run_file.mode == "rehearse"

    def context(self) -> str:
        """What `headrace_jobs.run` tells the user's code."""
        run_file = self.run_file
        return run.encode(
            job=run.JobRef(**vars(run_file.job)),
            number=run_file.run,
            attempt=run_file.attempt,
            epoch=run_file.epoch,
            rehearsing=self.rehearsing,
        )

    def tell_the_driver(self) -> None:
        os.environ[run.VARIABLE] = self.context()

    def change(self, run_file: RunFile) -> None:
        self.run_file = run_file
        self.tell_the_driver()


def claim_body(run_file: RunFile, *, spark_version: str) -> str:
    """What an attempt says of itself in its claim; savepoints of the run have Spark's version from there."""
    told = {
        "uid": run_file.uid,
        "epoch": run_file.epoch,
        "claimedAt": iso(time.time()),
        "sparkVersion": spark_version,
    }
    return json.dumps(told)
