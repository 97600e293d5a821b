"""From botocore's many errors to our few: what the user can do about it decides the class."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3.exceptions import NameResolutionError

from headrace_jobs.store.errors import (
    ArchivedError,
    BadCredentialsError,
    ClockSkewError,
    KmsKeyError,
    NoBucketError,
    NoCredentialsError,
    NoRightsError,
    NoSpaceError,
    NotFoundError,
    RoleRefusedError,
    StoreError,
    TlsError,
    UnavailableError,
    WrongEndpointError,
    WrongRegionError,
)
from headrace_jobs.store.retry import TransientError

_TRANSIENT_CODES = {
    "InternalError",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    # Two conditional writes met inside the server; it knows the winner when asked again.
    "ConditionalRequestConflict",
    "OperationAborted",
    # Not of S3, but of who gives out its credentials: it could not ask the cluster whose token that is.
    "IDPCommunicationError",
}
# By botocore itself, when the credentials of a role are to be had or to be renewed.
_ROLE_OPERATIONS = {"AssumeRole", "AssumeRoleWithWebIdentity", "GetRoleCredentials"}
_BAD_KEY_CODES = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "InvalidSecurity",
}
_REGION_CODES = {
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "301",
}
# By MinIO, by Ceph and versitygw (with 403, like missing rights), and by MinIO for a bucket of its own.
_FULL_CODES = {"XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded"}
_INSUFFICIENT_STORAGE = 507
_NEEDED_RIGHTS = (
    "give the job's credentials s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket there"
)
_NEEDED_KMS_RIGHTS = "give the job's credentials kms:GenerateDataKey and kms:Decrypt on the key of the bucket"


def status_of(error: boto.ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def code_of(error: boto.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def message_of(error: boto.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def translated(error: Exception, *, action: str, bucket: str, where: str, endpoint: str) -> Exception:
    """The error to raise instead: a StoreError, or a TransientError around the one to give up with."""
    match error:
        case StoreError() | TransientError():
            return error
        case boto.ClientError():
            return _from_answer(error, action=action, bucket=bucket, where=where, endpoint=endpoint)
        case boto.SSLError() if not _is_broken_off(error):
            return TlsError(endpoint, _innermost(error))
        case boto.NoCredentialsError() | boto.PartialCredentialsError() | boto.CredentialRetrievalError():
            return NoCredentialsError(endpoint)
        case ResponseParserError():
            return WrongEndpointError(endpoint, "its answers are not those of S3")
        case boto.EndpointConnectionError() if _is_unknown_name(error):
            return WrongEndpointError(endpoint, "its name is not known")
        case boto.HTTPClientError() | boto.ConnectionError() | boto.IncompleteReadError():
            return TransientError(UnavailableError(where, _innermost(error)))
    return error


def _from_answer(
    error: boto.ClientError, *, action: str, bucket: str, where: str, endpoint: str
) -> Exception:
    status, code = status_of(error), code_of(error)
    # Of KMS, which S3 asks for its keys, S3 passes on the codes behind a prefix.
    if code.removeprefix("KMS.") in _TRANSIENT_CODES or status in (429, 500, 502, 503, 504):
        return TransientError(UnavailableError(where, f"{status} {code}".strip()))
    if error.operation_name in _ROLE_OPERATIONS:
        return RoleRefusedError(endpoint, f"{code}: {message_of(error)}")
    if code == "NoSuchBucket":
        return NoBucketError(bucket)
    if code == "RequestTimeTooSkewed":
        return ClockSkewError(endpoint)
    if code in _BAD_KEY_CODES:
        return BadCredentialsError(endpoint)
    if code in _REGION_CODES or status == 301:
        return WrongRegionError(bucket, _region_of(error))
    told = f"{status} {code}: {message_of(error)}".rstrip(": ")[:300]
    return _about_the_object(error, action, where) or WrongEndpointError(
        endpoint, f"asked to {action}, it answered {told}"
    )


def _about_the_object(error: boto.ClientError, action: str, where: str) -> StoreError | None:
    """What is wrong with this object or its bucket, and not with how the server is reached."""
    status, code = status_of(error), code_of(error)
    if code in _FULL_CODES or status == _INSUFFICIENT_STORAGE:
        return NoSpaceError(where)
    if code.startswith("KMS."):
        return KmsKeyError(where, f"{code}: {message_of(error)}")
    if code == "InvalidObjectState":
        return ArchivedError(where)
    if status == 403:
        # Amazon names the right that is missing; that of the key is another one than those of the bucket.
        of_key = " kms:" in message_of(error)
        return NoRightsError(action, where, needed=_NEEDED_KMS_RIGHTS if of_key else _NEEDED_RIGHTS)
    if status == 404:
        return NotFoundError(where)
    return None


def _is_broken_off(error: Exception) -> bool:
    """The other end, or something between, hung up in the middle: that says nothing of certificates."""
    passing = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    return any(isinstance(cause, passing) for cause in _chain(error))


def _is_unknown_name(error: Exception) -> bool:
    """A name server that does not answer (while it is replaced, say) has not said that it is unknown."""
    causes = list(_chain(error))
    unanswered = any(isinstance(e, socket.gaierror) and e.errno == socket.EAI_AGAIN for e in causes)
    return not unanswered and any(isinstance(e, NameResolutionError) for e in causes)


def _region_of(error: boto.ClientError) -> str | None:
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    details: Any = error.response.get("Error", {})
    return headers.get("x-amz-bucket-region") or details.get("Region")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """botocore keeps the cause in its keyword arguments, urllib3 in `reason` or in its own arguments, Python
    in `__cause__`."""
    pending: list[Any] = [error]
    while pending:
        current = pending.pop()
        if isinstance(current, BaseException):
            yield current
            pending += [getattr(current, "kwargs", {}).get("error"), getattr(current, "reason", None)]
            pending += [*current.args, current.__cause__]


def _innermost(error: BaseException) -> str:
    *_, last = _chain(error)
    return str(last).split("\n", 1)[0][:200]
