"""A store in an S3 bucket, through boto3. Copies are made by the server: no content passes through here."""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from headrace_jobs.store.errors import (
    NoConditionalPutError,
    NoRightsError,
    NotFoundError,
    SourceChangedError,
    StoreError,
)
from headrace_jobs.store.interface import PIECE_BYTES, Copy, Entry, OpenUpload
from headrace_jobs.store.probe import probe_conditional_put
from headrace_jobs.store.retry import RetryPolicy, with_retries
from headrace_jobs.store.s3_client import s3_client
from headrace_jobs.store.s3_errors import code_of, status_of, translated
from headrace_jobs.store.s3_options import S3Options

log = logging.getLogger("headrace")

Result = TypeVar("Result")

_COPY_THREADS = 32
_SPARE_CONNECTIONS = 8
_DELETES_PER_REQUEST = 1000
# Above this, in parts. Servers copy up to 5 GB in one request, but only Amazon's sends signs of life:
# with others, one that takes longer than the silence below is given up, and never succeeds.
DEFAULT_SINGLE_COPY_BYTES = 512 * 1024**2
_CHUNK_BYTES = 1024 * 1024
# A server that says nothing for so long is asked again.
SILENCE_SECONDS = 30
_WRITER = "headrace-writer"


class S3Store:
    def __init__(
        self,
        bucket: str,
        prefix: str,
        options: S3Options = S3Options(),  # noqa: B008  (frozen)
        *,
        policy: RetryPolicy = RetryPolicy(),  # noqa: B008  (frozen)
        single_copy_bytes: int = DEFAULT_SINGLE_COPY_BYTES,
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._options = options
        self._policy = policy
        self._single_copy_bytes = single_copy_bytes
        self._client = s3_client(
            options, silence_seconds=SILENCE_SECONDS, connections=_COPY_THREADS + _SPARE_CONNECTIONS
        )

    @property
    def url(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def list(self, prefix: str = "") -> Iterator[Entry]:
        for page in self._pages(prefix):
            for item in page.get("Contents", ()):
                # Keys that end in a slash are S3A's markers for directories.
                if not item["Key"].endswith("/"):
                    yield Entry(
                        key=self._relative(item["Key"]),
                        size=item["Size"],
                        etag=item["ETag"],
                        modified=item["LastModified"].timestamp(),
                    )

    def children(self, prefix: str) -> Sequence[str]:
        names: set[str] = set()
        directory = f"{prefix}/" if prefix else ""
        for page in self._pages(directory, Delimiter="/"):
            found = [item["Prefix"] for item in page.get("CommonPrefixes", ())]
            found += [item["Key"] for item in page.get("Contents", ()) if not item["Key"].endswith("/")]
            names |= {self._relative(key).removeprefix(directory) for key in found}
        return sorted(names)

    def get(self, key: str) -> bytes:
        return self._call("read", key, lambda _: self._client.get_object(**self._at(key))["Body"].read())

    def put(self, key: str, content: bytes) -> None:
        self._call(
            "write",
            key,
            lambda _: self._client.put_object(**self._at(key), **self._encryption(), Body=content),
        )

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        ranges = range(0, entry.size, PIECE_BYTES) if entry.size > PIECE_BYTES else [None]
        read = 0
        for first in ranges:
            piece = self._unchanged(entry, lambda first=first: self._read_piece(entry, first))
            read += len(piece)
            yield piece
        if read != entry.size:
            raise SourceChangedError(f"{self.url}/{entry.key}")

    def _read_piece(self, entry: Entry, first: int | None) -> bytes:
        bounds = {} if first is None else {"Range": f"bytes={first}-{first + PIECE_BYTES - 1}"}
        request = {**self._at(entry.key), **bounds, "IfMatch": entry.etag}
        return self._call("read", entry.key, lambda _: self._client.get_object(**request)["Body"].read())

    def put_pieces(self, key: str, pieces: Iterable[bytes]) -> None:
        remaining = iter(pieces)
        first, second = next(remaining, b""), next(remaining, None)
        if second is None:
            self.put(key, first)
            return

        def parts(upload: str) -> Iterator[dict[str, Any]]:
            for number, piece in enumerate(chain([first, second], remaining), start=1):
                yield self._put_part(key, upload, number, piece)

        self._in_parts(key, parts)

    def _put_part(self, key: str, upload: str, number: int, piece: bytes) -> dict[str, Any]:
        request = {**self._at(key), "UploadId": upload, "PartNumber": number, "Body": piece}
        answer: Any = self._call("write", key, lambda _: self._client.upload_part(**request))
        return {"PartNumber": number, "ETag": answer["ETag"]}

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self._create(key, lambda: nullcontext(content))

    def download(self, key: str, path: Path) -> None:
        def attempt(_failures: int) -> None:
            with path.open("wb") as file:
                shutil.copyfileobj(self._client.get_object(**self._at(key))["Body"], file, _CHUNK_BYTES)

        self._call("read", key, attempt)

    def upload_if_absent(self, key: str, path: Path) -> bool:
        return self._create(key, lambda: path.open("rb"))

    def _create(self, key: str, opened: Callable[[], AbstractContextManager[Any]]) -> bool:
        writer = str(uuid.uuid4())

        def attempt(failures: int) -> bool:
            try:
                with opened() as content:
                    self._client.put_object(
                        **self._at(key),
                        **self._encryption(),
                        Body=content,
                        IfNoneMatch="*",
                        Metadata={_WRITER: writer},
                    )
            except ClientError as error:
                # With encryption asked for, that may be what the server does not know.
                if status_of(error) == 501 and self._options.encryption is None:
                    raise NoConditionalPutError(self.url) from error
                if status_of(error) != 412:
                    raise
                # After a lost answer the object that refuses us may be our own.
                return failures > 0 and self._writer_of(key) == writer
            return True

        return self._call("write", key, attempt)

    def copy(self, copy: Copy) -> None:
        if copy.source.size > self._single_copy_bytes:
            self._unchanged(copy.source, lambda: self._copy_in_parts(copy))
        else:
            self._unchanged(
                copy.source, lambda: self._call("copy", copy.source.key, lambda _: self._copy_at_once(copy))
            )

    def _unchanged(self, source: Entry, operation: Callable[[], Result]) -> Result:
        """The operation has the precondition that the source is what was listed."""
        try:
            return operation()
        except NotFoundError:
            raise SourceChangedError(f"{self.url}/{source.key}") from None
        except ClientError as error:
            if status_of(error) != 412:
                raise
            raise SourceChangedError(f"{self.url}/{source.key}") from None

    def copy_many(self, copies: Iterable[Copy]) -> None:
        with ThreadPoolExecutor(_COPY_THREADS) as pool:
            for _ in pool.map(self.copy, copies):
                pass

    def delete_many(self, keys: Iterable[str]) -> None:
        self._delete_objects(self._absolute(key) for key in keys)

    def delete_tree(self, prefix: str) -> None:
        # With the markers for directories, which are no entries but would stay for ever.
        self._delete_objects(
            item["Key"] for page in self._pages(f"{prefix}/") for item in page.get("Contents", ())
        )

    def open_uploads(self) -> Sequence[OpenUpload]:
        own = self._absolute("")
        found = self._uploads(own)
        if not found and self._options.endpoint is not None:
            # MinIO takes a prefix here for a whole key, and finds nothing: so all of the bucket, if we may.
            with suppress(NoRightsError):
                found = [one for one in self._uploads("") if one["Key"].startswith(own)]
        return [upload for one in found if (upload := self._with_parts(one)) is not None]

    def abort_upload(self, upload: OpenUpload) -> None:
        request = {**self._at(upload.key), "UploadId": upload.id}
        with suppress(NotFoundError):
            self._call("delete", upload.key, lambda _: self._client.abort_multipart_upload(**request))

    def probe(self) -> None:
        next(iter(self.list("_probe/")), None)
        probe_conditional_put(self)

    def _pages(self, prefix: str, **more: Any) -> Iterator[dict[str, Any]]:
        request = {"Bucket": self._bucket, "Prefix": self._absolute(prefix), **more}
        while True:
            page: dict[str, Any] = self._call(
                "list", prefix, lambda _, request=request: self._client.list_objects_v2(**request)
            )
            yield page
            if not page.get("IsTruncated"):
                return
            request = {**request, "ContinuationToken": page["NextContinuationToken"]}

    def _uploads(self, absolute_prefix: str) -> list[dict[str, Any]]:
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": absolute_prefix}
        found: list[dict[str, Any]] = []
        while True:
            page: dict[str, Any] = self._call(
                "list uploads in",
                "",
                lambda _, request=request: self._client.list_multipart_uploads(**request),
            )
            found += page.get("Uploads", ())
            if not page.get("IsTruncated"):
                return found
            marks = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}
            request = {**request, **marks}

    def _with_parts(self, upload: Mapping[str, Any]) -> OpenUpload | None:
        """None for one that has ended meanwhile."""
        key = self._relative(upload["Key"])
        request: dict[str, Any] = {**self._at(key), "UploadId": upload["UploadId"]}
        size, last_sign = 0, upload["Initiated"].timestamp()
        while True:
            try:
                page: dict[str, Any] = self._call(
                    "read", key, lambda _, request=request: self._client.list_parts(**request)
                )
            except NotFoundError:
                return None
            for part in page.get("Parts", ()):
                size, last_sign = size + part["Size"], max(last_sign, part["LastModified"].timestamp())
            if not page.get("IsTruncated"):
                return OpenUpload(key, upload["UploadId"], last_sign, size)
            request = {**request, "PartNumberMarker": page["NextPartNumberMarker"]}

    def _copy_at_once(self, copy: Copy) -> None:
        self._client.copy_object(
            **self._at(copy.target),
            **self._encryption(),
            CopySource=self._at(copy.source.key),
            CopySourceIfMatch=copy.source.etag,
        )

    def _copy_in_parts(self, copy: Copy) -> None:
        firsts = enumerate(range(0, copy.source.size, self._single_copy_bytes), start=1)
        self._in_parts(
            copy.target,
            lambda upload: (self._copy_part(copy, upload, number, first) for number, first in firsts),
        )

    def _in_parts(self, key: str, make: Callable[[str], Iterable[dict[str, Any]]]) -> None:
        writer = str(uuid.uuid4())
        request = {**self._at(key), **self._encryption(), "Metadata": {_WRITER: writer}}
        upload: str = self._call(
            "write", key, lambda _: self._client.create_multipart_upload(**request)["UploadId"]
        )
        try:
            self._complete(key, upload, list(make(upload)), writer)
        except BaseException:
            self._abort(key, upload)
            raise

    def _complete(self, key: str, upload: str, parts: Sequence[dict[str, Any]], writer: str) -> None:
        request = {**self._at(key), "UploadId": upload, "MultipartUpload": {"Parts": parts}}

        def attempt(failures: int) -> None:
            try:
                self._client.complete_multipart_upload(**request)
            except ClientError as error:
                # After a lost answer there is no such upload any more: it may have become the object.
                if failures == 0 or code_of(error) != "NoSuchUpload" or self._writer_of(key) != writer:
                    raise

        self._call("write", key, attempt)

    def _abort(self, key: str, upload: str) -> None:
        """Parts of an open upload are invisible, and paid for. But what went wrong is something else."""
        try:
            self._call(
                "delete", key, lambda _: self._client.abort_multipart_upload(**self._at(key), UploadId=upload)
            )
        except (StoreError, ClientError, BotoCoreError) as error:
            log.warning("the parts of %s/%s stay behind (upload %s): %s", self.url, key, upload, error)

    def _copy_part(self, copy: Copy, upload: str, number: int, first: int) -> dict[str, Any]:
        last = min(first + self._single_copy_bytes, copy.source.size) - 1
        answer: Any = self._call(
            "copy",
            copy.source.key,
            lambda _: self._client.upload_part_copy(
                **self._at(copy.target),
                UploadId=upload,
                PartNumber=number,
                CopySource=self._at(copy.source.key),
                CopySourceIfMatch=copy.source.etag,
                CopySourceRange=f"bytes={first}-{last}",
            ),
        )
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    def _delete_objects(self, absolute_keys: Iterable[str]) -> None:
        remaining = iter(absolute_keys)
        while batch := [{"Key": key} for key in islice(remaining, _DELETES_PER_REQUEST)]:
            self._call("delete", "", lambda _, batch=batch: self._delete_batch(batch))

    def _delete_batch(self, batch: Sequence[Any]) -> None:
        answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": [*batch], "Quiet": True})
        for refused in answer.get("Errors", ()):
            # One request, many answers: the first refusal speaks for the batch, as an error of its own.
            status = 503 if refused.get("Code") in ("InternalError", "SlowDown") else 403
            raise ClientError(
                {"Error": dict(refused), "ResponseMetadata": {"HTTPStatusCode": status}}, "DeleteObjects"
            )

    def _writer_of(self, key: str) -> str | None:
        # Names of headers have no case, and a proxy before the server may write them as it likes.
        metadata = self._client.head_object(**self._at(key)).get("Metadata", {})
        return {name.lower(): value for name, value in metadata.items()}.get(_WRITER)

    def _call(self, action: str, key: str, operation: Callable[[int], Result]) -> Result:
        """One request, tried again as long as it makes sense, failing with a sentence for the user."""

        def attempt(failures: int) -> Result:
            try:
                return operation(failures)
            except (ClientError, BotoCoreError) as error:
                if isinstance(error, ClientError) and status_of(error) == 412:
                    raise
                raise translated(
                    error,
                    action=action,
                    bucket=self._bucket,
                    where=f"{self.url}/{key}".rstrip("/"),
                    endpoint=self._options.endpoint or "Amazon S3",
                ) from error

        return with_retries(attempt, self._policy)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._absolute(key)}

    def _absolute(self, key: str) -> str:
        return f"{self._prefix}/{key}" if self._prefix else key

    def _relative(self, key: str) -> str:
        return key.removeprefix(f"{self._prefix}/") if self._prefix else key

    def _encryption(self) -> dict[str, str]:
        """With every write: a copy does not inherit that of its source, and a bucket may insist on it."""
        match self._options.encryption:
            case "SSE-S3":
                return {"ServerSideEncryption": "AES256"}
            case "SSE-KMS":
                key = {"SSEKMSKeyId": self._options.kms_key} if self._options.kms_key else {}
                return {"ServerSideEncryption": "aws:kms", **key}
            case _:
                return {}
