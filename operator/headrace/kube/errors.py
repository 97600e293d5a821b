"""What the API server refuses, as types: callers act on the kind, people read the message."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """Base of all of them."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NotFound(ApiError):
    """There is no such object."""


class AlreadyExists(ApiError):
    """Somebody has created an object of this name before."""


class Conflict(ApiError):
    """The object is not the one that was read: its version or its uid differs."""


class Gone(ApiError):
    """The page of a list, or the version to watch from, is too old."""


class Invalid(ApiError):
    """The server's schema or a rule of it refuses the object."""


class Denied(ApiError):
    """A quota, an admission rule or missing rights. `reason` is the word for conditions and events."""

    def __init__(self, message: str, *, status: int = 403) -> None:
        super().__init__(message, status=status)
        self.reason = _denial(message)


class Unavailable(ApiError):
    """No answer, or none that says anything, after all retries. A write may have happened all the same."""


_KINDS: dict[int, type[ApiError]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    **dict.fromkeys((429, 500, 502, 503, 504), Unavailable),
}


def from_answer(status: int, body: dict[str, Any]) -> ApiError:
    message = str(body.get("message") or f"HTTP {status}")
    kind = _KINDS.get(status, ApiError)
    if body.get("reason") == "AlreadyExists":
        kind = AlreadyExists
    elif "admission webhook" in message and "denied" in message:
        # A webhook chooses the status of its refusal as it likes.
        kind = Denied
    return kind(message, status=status)


def denial_in(message: str) -> str | None:
    """The word for a refusal that somebody else tells of; None where nothing was refused."""
    return _denial(message) if "forbidden" in message or "denied" in message else None


def _denial(message: str) -> str:
    if "exceeded quota" in message:
        return "QuotaExceeded"
    if "violates PodSecurity" in message:
        return "PodSecurity"
    if "admission" in message:
        return "AdmissionDenied"
    return "Forbidden"
