"""From a URL to a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from headrace_jobs.store.directory import DirectoryStore
from headrace_jobs.store.errors import BadLocationError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.s3_options import S3Options


def open_store(url: str, s3: S3Options | None = None) -> Store:
    """`file:///directory`, `/directory` or `s3://bucket/prefix`. Opening does no I/O."""
    parts = urlsplit(url)
    match parts.scheme:
        case "":
            return DirectoryStore(Path(url))
        case "file":
            if parts.netloc not in ("", "localhost"):
                raise BadLocationError(
                    url, f"'{parts.netloc}' is taken for a host: write file:///{parts.netloc}{parts.path}"
                )
            return DirectoryStore(Path(unquote(parts.path)))
        case "s3" | "s3a":
            # boto3 takes a moment to import, which a directory need not pay for.
            from headrace_jobs.store.s3 import S3Store  # noqa: PLC0415

            if not parts.netloc:
                raise BadLocationError(url, "there is no bucket in it")
            return S3Store(parts.netloc, parts.path, s3 or S3Options())
        case scheme:
            raise BadLocationError(url, f"unknown scheme '{scheme}'")
