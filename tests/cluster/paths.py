"""Where everything lies. Nothing of the cluster is written outside these directories."""

import os
from pathlib import Path

SOURCE = Path(__file__).parent


def cache_dir() -> Path:
    """What outlives a cluster: binaries and images, keyed by their versions."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headrace"
