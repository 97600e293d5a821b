"""How to reach S3: the same options for Python (boto3) and for the JVM (S3A). No secrets in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_DEFAULT_REGION = "us-east-1"
_DEFAULT_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_KEYS_FROM_FILE = "dev.headrace.FileCredentialsProvider"
_S3A = "spark.hadoop.fs.s3a."
_CREDENTIALS_FILE = "spark.hadoop.headrace.s3.credentials.file"
_CA_FILE = "spark.hadoop.headrace.s3.ca.file"
_S3A_ENCRYPTION = {"SSE-S3": "AES256", "SSE-KMS": "SSE-KMS"}
_ENCRYPTION_OF_S3A = {theirs: ours for ours, theirs in _S3A_ENCRYPTION.items()}

# A store that does not answer, or only answers "slow down", must fail the batch within minutes: then the
# attempt ends, the reason is known, and a new one begins. S3A itself waits 5 x 200 s for a silent server, and
# doubles its pauses twenty times for a throttling one, which is more than a day.
PATIENCE_CONF: Mapping[str, str] = {
    f"{_S3A}connection.timeout": "30s",
    f"{_S3A}connection.request.timeout": "60s",
    f"{_S3A}attempts.maximum": "3",
    f"{_S3A}retry.limit": "4",
    f"{_S3A}retry.throttle.limit": "8",
}


@dataclass(frozen=True)
class S3Options:
    endpoint: str | None = None
    """Only for servers other than Amazon's."""
    region: str | None = None
    path_style: bool = False
    ca_file: Path | None = None
    """A PEM file with the authorities of the endpoint's certificate."""
    credentials_file: Path | None = None
    """Keys in the AWS profile format, or a directory with a file for each; read again when they change.
    Without it: the AWS default chain."""
    encryption: str | None = None
    """`SSE-S3` or `SSE-KMS`, asked for with every write; without it, the bucket's own setting holds."""
    kms_key: str | None = None
    """The key for `SSE-KMS`; without it, the bucket's default key."""

    @property
    def signing_region(self) -> str | None:
        # Other servers do not look at the region, but the signature needs one.
        return self.region or (_DEFAULT_REGION if self.endpoint else None)


def options_in(conf: Mapping[str, str]) -> S3Options:
    """The way back: how Spark's settings reach S3, for those who have nothing else to go by."""
    s3a = {key.removeprefix(_S3A): value for key, value in conf.items() if key.startswith(_S3A)}
    credentials, authorities = conf.get(_CREDENTIALS_FILE), conf.get(_CA_FILE)
    return S3Options(
        endpoint=s3a.get("endpoint"),
        region=s3a.get("endpoint.region"),
        path_style=s3a.get("path.style.access") == "true",
        ca_file=Path(authorities) if authorities is not None else None,
        credentials_file=Path(credentials) if credentials is not None else None,
        encryption=_ENCRYPTION_OF_S3A.get(s3a.get("encryption.algorithm", "")),
        kms_key=s3a.get("encryption.key"),
    )


def spark_conf(options: S3Options) -> dict[str, str]:
    """Spark settings with which S3A reaches the same place.

    Never a key among them: settings are shown in Spark's UI and passed on command lines. The JVM finds keys
    by the default chain (environment, workload identity, instance), or in the file that is named.
    """
    s3a = {
        "aws.credentials.provider": _KEYS_FROM_FILE if options.credentials_file else _DEFAULT_CHAIN,
        "path.style.access": str(options.path_style).lower(),
    }
    if options.endpoint:
        s3a["endpoint"] = options.endpoint
        s3a["connection.ssl.enabled"] = str(urlsplit(options.endpoint).scheme != "http").lower()
    if options.signing_region:
        s3a["endpoint.region"] = options.signing_region
    if options.encryption:
        s3a["encryption.algorithm"] = _S3A_ENCRYPTION[options.encryption]
    if options.kms_key:
        s3a["encryption.key"] = options.kms_key
    conf = {**PATIENCE_CONF, **{f"{_S3A}{key}": value for key, value in s3a.items()}}
    if options.credentials_file:
        conf[_CREDENTIALS_FILE] = str(options.credentials_file)
        # Else S3A looks for our provider only where it was loaded from itself: among Spark's own jars.
        conf[f"{_S3A}classloader.isolation"] = "false"
    # Users write s3:// as everywhere else; Hadoop knows the scheme only when told.
    conf["spark.hadoop.fs.s3.impl"] = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    return conf
