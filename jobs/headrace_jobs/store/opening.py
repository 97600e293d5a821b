"""From a URL to a store.

One rule, which is Hadoop's rule for its paths: what follows the scheme is the path as it is. Nothing in it is
escaped, and `?` and `#` are letters. Python and Spark are given the same text, and must mean the same place.
"""

from __future__ import annotations

import re
from pathlib import Path

from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.errors import BadLocationError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.s3_options import S3Options

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(//(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL)


def open_store(url: str, s3: S3Options | None = None) -> Store:
    """`file:///directory`, `/directory` or `s3://bucket/prefix`. Opening does no I/O."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return DirectoryStore(Path(url))
    authority, path = parts["authority"] or "", parts["path"]
    match parts["scheme"]:
        case "file":
            if authority not in ("", "localhost"):
                raise BadLocationError(
                    url, f"'{authority}' is taken for a host: write file:///{authority}{path}"
                )
            return DirectoryStore(Path(path))
        case "s3" | "s3a":
            # boto3 takes a moment to import, which a directory need not pay for.
            from headrace_jobs.store.s3 import S3Store  # noqa: PLC0415

            if not authority:
                raise BadLocationError(url, "there is no bucket in it")
            return S3Store(authority, path, s3 or S3Options())
        case scheme:
            raise BadLocationError(url, f"unknown scheme '{scheme}'")


def directory_url(path: Path) -> str:
    """The name of a directory that Python, Hadoop and Spark agree on. `Path.as_uri` would escape it."""
    return DirectoryStore(path).url


def local_directory(url: str) -> Path | None:
    """The way back, also from file:/directory, as Spark writes it; None for other places."""
    parts = _URL.fullmatch(url)
    return Path(parts["path"]) if parts is not None and parts["scheme"] == "file" else None
