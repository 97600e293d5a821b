"""Each way in which S3 says no becomes one sentence with the fix; what may pass is marked as such."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable

import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3.exceptions import NameResolutionError, NewConnectionError, SSLError

from headrace_jobs.store.errors import StoreError
from headrace_jobs.store.retry import RetryPolicy, TransientError
from headrace_jobs.store.s3 import S3Store
from headrace_jobs.store.s3_errors import translated
from headrace_jobs.store.s3_options import S3Options

WHERE = {"action": "write", "bucket": "b", "where": "s3://b/k", "endpoint": "https://s3.example"}


def answer(
    status: int, code: str, message: str = "", operation: str = "PutObject", **headers: str
) -> boto.ClientError:
    metadata = {"HTTPStatusCode": status, "HTTPHeaders": headers}
    told = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}
    return boto.ClientError(told, operation)  # type: ignore[arg-type]


def broken_handshake(cause: ssl.SSLError) -> Exception:
    return boto.SSLError(endpoint_url="https://s3.example", error=SSLError(cause))


def unknown_name(code: int = socket.EAI_NONAME, says: str = "Name or service not known") -> Exception:
    cause = socket.gaierror(code, says)
    reason = NameResolutionError("nowhere.invalid", None, cause)  # type: ignore[arg-type]
    reason.__cause__ = cause  # as urllib3 raises it
    return boto.EndpointConnectionError(endpoint_url="https://nowhere.invalid", error=reason)


def refused_connection() -> Exception:
    reason = NewConnectionError(None, "Connection refused")  # type: ignore[arg-type]
    return boto.EndpointConnectionError(endpoint_url="https://s3.example", error=reason)


@pytest.mark.parametrize(
    ("error", "reason", "says"),
    [
        (answer(404, "NoSuchBucket"), "NoBucket", "the bucket b does not exist: create it"),
        (answer(404, "NoSuchKey"), "NotFound", "s3://b/k does not exist"),
        (answer(403, "AccessDenied"), "NoRights", "not allowed to write s3://b/k: .*s3:PutObject"),
        (answer(403, "403"), "NoRights", "not allowed to write"),
        (
            answer(403, "AccessDenied", "x is not authorized to perform: kms:GenerateDataKey on resource: y"),
            "NoRights",
            "not allowed to write s3://b/k: .*kms:GenerateDataKey and kms:Decrypt",
        ),
        (answer(400, "KMS.NotFoundException", "no such key"), "KmsKey", r"\(KMS.NotFound.*no such key\)"),
        (answer(403, "InvalidObjectState"), "Archived", "s3://b/k is archived .* lifecycle rule"),
        (
            answer(403, "AccessDenied", "not you", "AssumeRoleWithWebIdentity"),
            "NoCredentials",
            r"\(AccessDenied: not you\): check the role's trust policy",
        ),
        (
            answer(400, "InvalidIdentityToken", "", "AssumeRoleWithWebIdentity"),
            "NoCredentials",
            "the service account names",
        ),
        (answer(403, "InvalidAccessKeyId"), "BadCredentials", "check the keys"),
        (answer(403, "SignatureDoesNotMatch"), "BadCredentials", "check the keys"),
        (answer(400, "ExpiredToken"), "BadCredentials", "check the keys"),
        (answer(403, "RequestTimeTooSkewed"), "ClockSkew", "set the clock"),
        (answer(507, "XMinioStorageFull"), "NoSpace", "no space left for s3://b/k: free some, raise"),
        (answer(507, ""), "NoSpace", "no space left"),
        (answer(403, "QuotaExceeded"), "NoSpace", "no space left"),
        (answer(400, "XMinioAdminBucketQuotaExceeded"), "NoSpace", "no space left"),
        (answer(301, "PermanentRedirect"), "WrongRegion", "set checkpoint.s3.region to the bucket's"),
        (answer(301, "301", **{"x-amz-bucket-region": "eu-west-1"}), "WrongRegion", "region to eu-west-1"),
        (answer(400, "AuthorizationHeaderMalformed"), "WrongRegion", "checkpoint.s3.region"),
        (
            answer(405, "MethodNotAllowed"),
            "WrongEndpoint",
            "asked to write, it answered 405 MethodNotAllowed",
        ),
        (
            answer(501, "NotImplemented", "encryption specified but KMS is not configured"),
            "WrongEndpoint",
            "answered 501 NotImplemented: encryption specified but KMS is not configured",
        ),
        (ResponseParserError("no XML"), "WrongEndpoint", "answers are not those of S3"),
        (unknown_name(), "WrongEndpoint", "its name is not known"),
        (boto.SSLError(endpoint_url="https://s3.example", error="self-signed"), "Tls", "checkpoint.s3.ca"),
        (broken_handshake(ssl.SSLCertVerificationError(1, "self-signed")), "Tls", "checkpoint.s3.ca"),
        (boto.NoCredentialsError(), "NoCredentials", "name a Secret"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_will_not_pass_is_said_at_once(error: Exception, reason: str, says: str) -> None:
    result = translated(error, **WHERE)
    assert isinstance(result, StoreError)
    assert result.reason == reason
    with pytest.raises(StoreError, match=says):
        raise result


@pytest.mark.parametrize(
    "error",
    [
        answer(500, "InternalError"),
        answer(503, "SlowDown"),
        answer(502, ""),
        answer(409, "ConditionalRequestConflict"),
        answer(429, "TooManyRequests"),
        answer(400, "KMS.ThrottlingException"),
        answer(400, "IDPCommunicationError", "", "AssumeRoleWithWebIdentity"),
        broken_handshake(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
        refused_connection(),
        unknown_name(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        boto.ReadTimeoutError(endpoint_url="https://s3.example", error="timed out"),
        boto.ConnectionClosedError(endpoint_url="https://s3.example"),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again_and_then_called_unavailable(error: Exception) -> None:
    result = translated(error, **WHERE)
    assert isinstance(result, TransientError)
    assert isinstance(result.final, StoreError)
    assert result.final.reason == "Unavailable"
    assert "s3://b/k does not answer" in str(result.final)


@pytest.mark.parametrize(
    ("code", "reason"), [(socket.EAI_AGAIN, "Unavailable"), (socket.EAI_NONAME, "WrongEndpoint")]
)
def test_a_name_server_that_is_away_is_no_wrong_endpoint(
    code: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it really comes, through urllib3 and botocore."""

    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "told by the resolver")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    options = S3Options(endpoint="http://s3.example:1", path_style=True)
    store = S3Store("b", "x", options, policy=RetryPolicy(deadline_seconds=0))
    with pytest.raises(StoreError) as raised:
        store.put("a", b"")
    assert raised.value.reason == reason


def test_a_server_that_hangs_up_in_the_handshake_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it really comes, through Python's ssl, urllib3 and botocore: no word of certificates."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    calls: list[int] = []

    def hang_up(listener: socket.socket) -> None:
        for call in range(2):
            connection, _ = listener.accept()
            with connection:
                calls.append(call)
                connection.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang_up, args=(listener,), daemon=True).start()
        options = S3Options(endpoint=f"https://127.0.0.1:{listener.getsockname()[1]}", path_style=True)
        policy = RetryPolicy(deadline_seconds=30, first_delay_seconds=0)
        store = S3Store("b", "x", options, policy=policy)
        monkeypatch.setattr("headrace_jobs.store.s3.with_retries", _twice)
        with pytest.raises(StoreError, match=r"does not answer .*EOF"):
            store.put("a", b"")
    assert calls == [0, 1]


def _twice(operation: Callable[[int], object], _: RetryPolicy) -> object:
    try:
        return operation(0)
    except TransientError:
        try:
            return operation(1)
        except TransientError as error:
            raise error.final from None


def test_our_own_faults_are_not_dressed_up() -> None:
    fault = KeyError("ours")
    assert translated(fault, **WHERE) is fault
