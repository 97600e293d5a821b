"""Spark's own books of its executors, as its web interface tells them."""

import json
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.streamjobs import Job

# Spark's web interface listens on every address of the pod.
_BOOKS = """import json, sys, urllib.request as r
place = "http://localhost:" + sys.argv[1] + "/api/v1/applications"
def get(path): return json.load(r.urlopen(place + path, timeout=10))
print(json.dumps(get("/" + get("")[0]["id"] + "/allexecutors")))"""


def executors_in_books(job: Job) -> list[dict[str, Any]]:
    """All that there ever were under this driver, with their tasks, also those that are gone."""
    port = urlsplit(job.agent_says("/v1/status")["uiUrl"]).port
    told = json.loads(job.in_driver("python3", "-c", _BOOKS, str(port)))
    return [one for one in told if one["id"] != "driver"]
