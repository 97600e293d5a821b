"""Keys from a file that may be replaced while the process runs: a rotated Secret needs no restart."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

from botocore.credentials import Credentials, ReadOnlyCredentials

from headrace_jobs.store.errors import CredentialsFileError

_PROFILE = "default"


class FileCredentials(Credentials):
    """botocore asks for a frozen copy before each request, which is when the file is looked at again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._current = ReadOnlyCredentials("", "", None)
        super().__init__(access_key="", secret_key="", method="headrace-file")

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        try:
            stat = os.stat(self._path)  # noqa: PTH116  (follows the links by which Kubernetes swaps Secrets)
        except OSError:
            # A Secret is swapped link by link: keep what we have while the file is away.
            if self._seen is None:
                raise CredentialsFileError(str(self._path), "it cannot be read") from None
            return self._current
        if (stat.st_mtime_ns, stat.st_ino) != self._seen:
            self._current = _read(self._path)
            self._seen = (stat.st_mtime_ns, stat.st_ino)
        return self._current


def _read(path: Path) -> ReadOnlyCredentials:
    parser = configparser.RawConfigParser()
    parser.read_string(path.read_text(), source=str(path))
    profile = parser[_PROFILE] if parser.has_section(_PROFILE) else {}
    try:
        return ReadOnlyCredentials(
            profile["aws_access_key_id"], profile["aws_secret_access_key"], profile.get("aws_session_token")
        )
    except KeyError as missing:
        raise CredentialsFileError(str(path), f"[{_PROFILE}] in it has no {missing}") from None
