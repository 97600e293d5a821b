"""Asks the agent of the driver in this pod, and prints what it says: for those who may run commands here.

    kubectl exec <driver> -- python3 -m headrace_jobs.harness.ask --run-file … /v1/scaling

The token stays where it is: in a file of the pod that only the driver's own user can read.
"""

from __future__ import annotations

import argparse
import http.client
import os
import sys
from pathlib import Path

from headrace_jobs.harness.runfile import RunFile, RunFileInvalid, read_run_file

_TIMEOUT_SECONDS = 10


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run-file", type=Path, required=True)
    parser.add_argument("path", choices=["/v1/status", "/v1/scaling"])
    arguments = parser.parse_args(argv)
    try:
        code, text = ask(read_run_file(arguments.run_file), arguments.path)
    except (RunFileInvalid, OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"the agent cannot be asked: {error}\n")
        return 1
    (sys.stdout if code == 200 else sys.stderr).write(f"{text}\n")
    return 0 if code == 200 else 1


def ask(run_file: RunFile, path: str) -> tuple[int, str]:
    host = run_file.agent.host
    loopback = "::1" if ":" in host else "127.0.0.1"
    connection = http.client.HTTPConnection(loopback, run_file.agent.port, timeout=_TIMEOUT_SECONDS)
    token = (
        Path(run_file.agent.token_file).read_text(encoding="utf-8").strip()
        if run_file.agent.token_file is not None
        else os.environ.get("HEADRACE_AGENT_TOKEN", "")
    )
    headers = {"Authorization": f"Bearer {token}", "X-Headrace-Uid": run_file.uid}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


if __name__ == "__main__":
    sys.exit(main())
