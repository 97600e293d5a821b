"""How far a copy is, for the operator: a page of numbers on the pod's own address. It tells nothing else."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headrace_jobs.store.savepoints import Progress

PROGRESS_PATH = "/v1/progress"
_QUIET_SECONDS = 5


@contextlib.contextmanager
def telling_progress(port: int | None, *, owner: str) -> Iterator[Callable[[Progress], None]]:
    """Serves the last progress that was told, while it is open. `owner` says whose it is: addresses of pods
    are used again. A port that is taken is no reason not to copy."""
    last: dict[str, int] = {}

    class Page(BaseHTTPRequestHandler):
        timeout = _QUIET_SECONDS

        def do_GET(self) -> None:
            body = json.dumps({"owner": owner, **last}).encode()
            self.send_response(200 if self.path == PROGRESS_PATH and last else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Not a line for each look."""

    def tell(progress: Progress) -> None:
        last.update(bytesDone=progress.bytes_done, bytes=progress.bytes)

    with contextlib.ExitStack() as stack:
        if port is not None:
            with contextlib.suppress(OSError):
                server = stack.enter_context(ThreadingHTTPServer(("", port), Page))
                threading.Thread(target=server.serve_forever, daemon=True).start()
                stack.callback(server.shutdown)
        yield tell
