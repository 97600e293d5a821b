"""The client of boto3, as our store wants it: no retries of its own, keys that may change, one region."""

from __future__ import annotations

from typing import Any

import boto3
import botocore.session
from botocore.config import Config

from headrace_jobs.store.s3_credentials import FileCredentials
from headrace_jobs.store.s3_options import S3Options
from headrace_jobs.store.s3_times import read_time


def s3_client(options: S3Options, *, silence_seconds: float, connections: int) -> Any:
    session = botocore.session.Session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=read_time)
    if options.credentials_file is not None:
        session._credentials = FileCredentials(options.credentials_file)  # type: ignore[attr-defined]
    client = boto3.Session(botocore_session=session).client(
        "s3",
        endpoint_url=options.endpoint,
        region_name=options.signing_region,
        verify=str(options.ca_file) if options.ca_file else None,
        config=Config(
            s3={"addressing_style": "path" if options.path_style else "auto"},
            retries={"total_max_attempts": 1},  # ours know the deadline, and what a lost answer means
            connect_timeout=5,
            read_timeout=silence_seconds,
            max_pool_connections=connections,
            # Other servers do not all know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    if options.signing_region is not None:
        client.meta.events.register_last("before-parameter-build.s3", _stay_in_region)
    return client


def _stay_in_region(context: dict[str, Any], **_: Any) -> None:
    """boto3 follows a bucket into another region than it was told; S3A does not, on every server.

    What was found out here by a probe must hold for the JVM. Where no region is told, both look for it.
    """
    context.setdefault("s3_redirect", {})["redirected"] = True
