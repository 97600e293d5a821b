"""Where things that can be made again are kept: one directory per user, outside of any checkout."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/headrace`, or `~/.cache/headrace`."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "headrace"
