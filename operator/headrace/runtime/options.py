"""The command line of the operator: what the chart decides for it."""

from __future__ import annotations

import argparse
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from headrace.core.manifests import Platform


@dataclass(frozen=True, kw_only=True)
class Options:
    platform: Platform
    namespaces: tuple[str, ...]
    token_key: bytes
    lease_namespace: str
    lease_name: str
    identity: str
    port: int
    workers: int
    resync_seconds: float
    log_level: str


def parse_options(argv: list[str] | None = None) -> Options:
    arguments = _parser().parse_args(argv)
    key = arguments.token_key_file.read_bytes().strip()
    if len(key) < 16:
        raise SystemExit(f"{arguments.token_key_file}: the key of the tokens needs at least 16 characters")
    return Options(
        platform=Platform(
            job_image=arguments.job_image,
            headrace_image=arguments.headrace_image,
            image_pull_policy=arguments.image_pull_policy,
            service_account=arguments.service_account,
            checkpoint_location=arguments.checkpoint_location,
        ),
        namespaces=tuple(filter(None, arguments.namespaces.split(","))),
        token_key=key,
        lease_namespace=arguments.lease_namespace,
        lease_name=arguments.lease_name,
        # Of its own for each process: a restarted pod must not believe to hold what its predecessor held.
        identity=f"{os.environ.get('HOSTNAME', 'operator')}_{uuid.uuid4()}",
        port=arguments.port,
        workers=arguments.workers,
        resync_seconds=arguments.resync_seconds,
        log_level=arguments.log_level.upper(),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace.runtime", description="The Headrace operator: runs StreamJobs on Kubernetes."
    )
    parser.add_argument("--job-image", required=True, help="image of jobs that name none")
    parser.add_argument(
        "--headrace-image", required=True, help="this image: its init container brings the harness"
    )
    parser.add_argument("--image-pull-policy", choices=["Always", "IfNotPresent", "Never"])
    parser.add_argument("--service-account", default="headrace-driver", help="of drivers that name none")
    parser.add_argument(
        "--checkpoint-location", help="store of jobs that name none, such as s3://bucket/prefix"
    )
    parser.add_argument("--namespaces", default="", help="to work in, separated by commas; none: all")
    parser.add_argument(
        "--token-key-file", type=Path, required=True, help="key from which agents' tokens are made"
    )
    parser.add_argument("--lease-namespace", required=True)
    parser.add_argument("--lease-name", default="headrace")
    parser.add_argument("--port", type=int, default=8080, help="of /healthz, /readyz and /metrics")
    parser.add_argument("--workers", type=int, default=16, help="jobs that are worked on at the same time")
    parser.add_argument("--resync-seconds", type=float, default=600, help="every job is looked at this often")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return parser
