"""Where checkpoints and savepoints are kept, and how that store is reached."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from headrace.api.edits import Remove, SetValue
from headrace.api.forms import Form, as_text
from headrace.api.model import ApiModel, Broken, restart_field, rule, section, state_field
from headrace.api.names import DataKey, ObjectName
from headrace.api.quantities import Memory
from headrace.api.references import CertificateAuthority


def _location_from_speech(value: object) -> str | None:
    text = re.sub(r"^(s3a|s3n|S3|S3A)://", "s3://", as_text(value) or "").rstrip("/")
    text = re.sub(r"[%?#]+", "-", text)
    if text.startswith("s3://"):
        bucket, slash, prefix = text.removeprefix("s3://").partition("/")
        return f"s3://{bucket.lower().replace('_', '-')}{slash}{prefix}"
    if text.startswith("file:///"):
        return text
    if text.startswith("/"):
        return f"file://{text}"
    if re.match(r"^file:/[^/]", text):
        return text.replace("file:/", "file:///", 1)
    if re.fullmatch(r"[a-z0-9][a-z0-9.-]+(/\S*)?", text):
        return f"s3://{text}"
    return None


# No %, ? and #: to some of those who read it they mean more than themselves, and to some they do not.
LOCATION = Form(
    expects="a place such as s3://bucket/prefix, or file:///directory on one machine, without %, ? and #",
    pattern=r"^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s/%?#]+)*"
    r"|file://(/[^\s/%?#]+( +[^\s/%?#]+)*)+)$",
    example="s3://my-bucket/checkpoints",
    max_length=512,
    suggest=_location_from_speech,
)
Location = Annotated[str, LOCATION]

ENDPOINT = Form(
    expects="an URL like https://s3.example.com:9000",
    pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?$",
    example="https://s3.example.com",
    max_length=256,
    suggest=lambda value: f"https://{(as_text(value) or '').split('://')[-1].split('/')[0]}",
)

REGION = Form(
    expects="a region like eu-central-1",
    pattern=r"^[a-z0-9-]+$",
    example="us-east-1",
    max_length=64,
    suggest=lambda value: re.sub(r"[_ ]", "-", (as_text(value) or "").lower()),
)

KMS_KEY = Form(
    expects="a KMS key: its ARN, id or alias",
    pattern=r"^[A-Za-z0-9:/_.-]+$",
    example="alias/streams",
    max_length=512,
    suggest=as_text,
)


class S3Keys(ApiModel):
    """Access keys in a Secret. Only the job's own pods read it, as files, never the operator. New keys in it
    are taken up without a restart."""

    secret: ObjectName = restart_field("Name of the Secret, in the namespace of the job.")
    access_key_id: DataKey = restart_field("Key of the access key id in it.", default="AWS_ACCESS_KEY_ID")
    secret_access_key: DataKey = restart_field(
        "Key of the secret access key in it.", default="AWS_SECRET_ACCESS_KEY"
    )
    session_token: DataKey | None = restart_field(
        "Key of a session token in it, if there is one.", default=None
    )


class Encryption(ApiModel):
    """Encryption of what is written, by the S3 server."""

    type: Literal["SSE-S3", "SSE-KMS"] = restart_field("Whose key: the server's own, or one kept in KMS.")
    kms_key_id: Annotated[str, KMS_KEY] | None = restart_field(
        "The KMS key; none means the bucket's default key.", default=None
    )

    @rule(
        cel="!has(self.kmsKeyId) || self.type == 'SSE-KMS'",
        message="kmsKeyId needs type SSE-KMS",
    )
    def key_needs_kms(self) -> Broken | None:
        if self.kms_key_id is None or self.type == "SSE-KMS":
            return None
        return Broken(
            message="kmsKeyId has no meaning with SSE-S3",
            at=("kmsKeyId",),
            fix="set type: SSE-KMS, or remove kmsKeyId",
            edits=(SetValue(("type",), "SSE-KMS"),),
        )


class S3(ApiModel):
    """How S3 is reached. Nothing here is needed on AWS with workload identity."""

    endpoint: Annotated[str, ENDPOINT] | None = state_field(
        """URL of an S3 server that is not AWS (MinIO, Ceph, …). It must support conditional PUT. The state of
        a job does not move to another server with an edit.""",
        default=None,
    )
    region: Annotated[str, REGION] | None = restart_field("Region of the bucket.", default=None)
    path_style: bool | None = restart_field(
        "Address buckets by path, not by host name. Default: true with an `endpoint`, else false.",
        default=None,
    )
    ca: CertificateAuthority | None = section(
        "Certificates of a private authority that signed the server's.", default=None
    )
    encryption: Encryption | None = section("Encryption at rest.", default=None)
    credentials: S3Keys | None = section(
        """Access keys. Without them the pods use what their ServiceAccount or node gives them (IRSA, pod
        identity, …), which is better: nothing to rotate, nothing to leak.""",
        default=None,
    )


class Checkpoint(ApiModel):
    """The store of the job's checkpoints and savepoints."""

    location: Location | None = state_field(
        """Root of the store; the job adds `/<namespace>/<name>/<uid>/`. Default: the platform's. It cannot
        change once the job has a run: to move a job, take a savepoint and start a new job from its path.""",
        default=None,
    )
    s3: S3 | None = section("How S3 is reached, for the store and for `application.file`.", default=None)

    @rule(
        cel="!has(self.s3) || !has(self.location) || self.location.startsWith('s3://')",
        message="s3 settings need a location in S3",
    )
    def s3_settings_need_s3(self) -> Broken | None:
        if self.s3 is None or self.location is None or self.location.startswith("s3://"):
            return None
        return Broken(
            message=f"s3 has no meaning with location {self.location}",
            at=("s3",),
            fix="remove s3, or use a location in S3",
            edits=(Remove(("s3",)),),
        )


class State(ApiModel):
    """The state of the job's queries: RocksDB, checkpointed as changelogs."""

    partitions: int = restart_field(
        """Into how many partitions each stateful operator splits its state. The most cores that can work on
        it at a time. 16 is room for eight executors of two cores, at some 30 ms per batch and partition on a
        small machine: less would cap most jobs, more would slow small ones. Another number splits the state
        anew, with Spark 4.2 or newer: a savepoint is taken, and the new run splits its copy of the state
        before its queries start, which makes the gap longer. Spark's file sink cannot follow: refused.""",
        default=16,
        ge=1,
        le=4096,
    )
    memory: Memory | None = restart_field(
        """The most memory that RocksDB takes in each executor. Default: half of the executors'
        `memoryOverhead`.""",
        default=None,
    )
