"""Keys from files that may be replaced while the process runs: a rotated Secret needs no restart."""

from __future__ import annotations

import configparser
from pathlib import Path

from botocore.credentials import Credentials, ReadOnlyCredentials

from headrace_jobs.store.errors import CredentialsFileError

_PROFILE = "default"
# As dev.headrace.FileCredentialsProvider calls them, and as the operator mounts a Secret.
_ACCESS_KEY, _SECRET_KEY, _TOKEN = "access_key_id", "secret_access_key", "session_token"


class FileCredentials(Credentials):
    """From a directory with one file per key, or from a file in the AWS profile format.

    botocore asks for a frozen copy before each request, which is when they are read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._current: ReadOnlyCredentials | None = None
        super().__init__(access_key="", secret_key="", method="headrace-file")

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        read = _from_directory if self._path.is_dir() else _from_profile
        try:
            self._current = read(self._path)
        except FileNotFoundError as away:
            # A Secret is swapped link by link: keep what we have while a file is away.
            if self._current is None:
                raise CredentialsFileError(str(away.filename), "it is missing") from None
        except (OSError, UnicodeDecodeError):
            raise CredentialsFileError(str(self._path), "it cannot be read") from None
        return self._current


def _from_directory(directory: Path) -> ReadOnlyCredentials:
    # All files of a mounted Secret are swapped at once, by one link: behind it, no keys of two versions meet.
    version = (directory / _ACCESS_KEY).resolve(strict=True).parent
    token = _text(version / _TOKEN) if (version / _TOKEN).exists() else None
    return ReadOnlyCredentials(_text(version / _ACCESS_KEY), _text(version / _SECRET_KEY), token)


def _text(path: Path) -> str:
    # Secrets made from a file often end with a line break; no key does.
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        raise CredentialsFileError(str(path), "it is empty")
    return text


def _from_profile(path: Path) -> ReadOnlyCredentials:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except configparser.Error:
        # Its message quotes the line that it does not understand, which may be the key.
        raise CredentialsFileError(str(path), "it is not in the AWS profile format") from None
    profile = parser[_PROFILE] if parser.has_section(_PROFILE) else {}
    try:
        return ReadOnlyCredentials(
            profile[f"aws_{_ACCESS_KEY}"], profile[f"aws_{_SECRET_KEY}"], profile.get(f"aws_{_TOKEN}")
        )
    except KeyError as missing:
        raise CredentialsFileError(str(path), f"[{_PROFILE}] in it has no {missing}") from None
