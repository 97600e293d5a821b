"""What a driver tells to those who may run commands in its pod: its agent's answers, Spark's own books."""

import json
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.streamjobs import Job

_AGENT = ("python3", "-m", "headrace_jobs.harness.ask", "--run-file", "/etc/headrace/run/run.json")
# Spark's web interface listens on every address of the pod.
_BOOKS = """import json, sys, urllib.request as r
place = "http://localhost:" + sys.argv[1] + "/api/v1/applications"
def get(path): return json.load(r.urlopen(place + path, timeout=10))
print(json.dumps(get("/" + get("")[0]["id"] + "/allexecutors")))"""


def agent_says(job: Job, path: str) -> dict[str, Any]:
    return json.loads(_in_driver(job, *_AGENT, path))


def executors_in_books(job: Job) -> list[dict[str, Any]]:
    """All that there ever were under this driver, with their tasks, also those that are gone."""
    port = urlsplit(agent_says(job, "/v1/status")["uiUrl"]).port
    told = json.loads(_in_driver(job, "python3", "-c", _BOOKS, str(port)))
    return [one for one in told if one["id"] != "driver"]


def _in_driver(job: Job, *command: str) -> str:
    driver = job.driver()["metadata"]["name"]
    return job.cluster.kubectl("exec", "-n", job.namespace, driver, "-c", "driver", "--", *command)
