"""What can go wrong with a store. Each error is a sentence for the user: what, where, and what to do."""

from __future__ import annotations


class StoreError(Exception):
    """Base of all of them. `reason` is the word for conditions, events and metrics."""

    reason = "StoreError"


class NotFoundError(StoreError):
    reason = "NotFound"

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} does not exist")


class SourceChangedError(StoreError):
    """The object to copy is not the one that was listed any more."""

    reason = "SourceChanged"

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} changed or vanished while it was copied; list it again and retry")


class NoBucketError(StoreError):
    reason = "NoBucket"

    def __init__(self, bucket: str) -> None:
        super().__init__(f"the bucket {bucket} does not exist: create it, or correct checkpoint.location")


class NoRightsError(StoreError):
    reason = "NoRights"

    def __init__(self, action: str, where: str, *, needed: str) -> None:
        super().__init__(f"not allowed to {action} {where}: {needed}")


class KmsKeyError(StoreError):
    reason = "KmsKey"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            f"the KMS key of {where} cannot be used ({why}): correct checkpoint.s3.encryption.kmsKeyId, or "
            "enable the key"
        )


class ArchivedError(StoreError):
    reason = "Archived"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is archived and cannot be read: restore it, and exempt the location from the bucket's "
            "lifecycle rule"
        )


class BadCredentialsError(StoreError):
    reason = "BadCredentials"

    def __init__(self, endpoint: str) -> None:
        super().__init__(f"{endpoint} does not accept the credentials: check the keys in the job's Secret")


class CredentialsFileError(StoreError):
    reason = "BadCredentials"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"the credentials file {path} is of no use ({why}): check the Secret it comes from")


class NoCredentialsError(StoreError):
    reason = "NoCredentials"

    def __init__(self, endpoint: str) -> None:
        super().__init__(
            f"there are no credentials for {endpoint}: name a Secret in checkpoint.s3.credentials, "
            "or give the job's service account an identity"
        )


class RoleRefusedError(StoreError):
    reason = "NoCredentials"

    def __init__(self, endpoint: str, why: str) -> None:
        super().__init__(
            f"there are no credentials for {endpoint}: AWS does not give the job the role that it asks for "
            f"({why}): check the role's trust policy, and the role that the service account names"
        )


class WrongRegionError(StoreError):
    reason = "WrongRegion"

    def __init__(self, bucket: str, region: str | None) -> None:
        there = f" in {region}" if region else " in another region"
        fix = (
            f"set checkpoint.s3.region to {region}" if region else "set checkpoint.s3.region to the bucket's"
        )
        super().__init__(f"the bucket {bucket} is{there}: {fix}")


class WrongEndpointError(StoreError):
    reason = "WrongEndpoint"

    def __init__(self, endpoint: str, why: str) -> None:
        super().__init__(f"{endpoint} is not an S3 endpoint ({why}): correct checkpoint.s3.endpoint")


class ClockSkewError(StoreError):
    reason = "ClockSkew"

    def __init__(self, endpoint: str) -> None:
        super().__init__(
            f"this machine's clock and the one of {endpoint} are too far apart: set the clock (NTP)"
        )


class TlsError(StoreError):
    reason = "Tls"

    def __init__(self, endpoint: str, why: str) -> None:
        super().__init__(
            f"the TLS certificate of {endpoint} is not trusted ({why}): "
            "give its authority in checkpoint.s3.ca, or correct the endpoint's name"
        )


class UnavailableError(StoreError):
    """Still failing after all retries; the next try may work."""

    reason = "Unavailable"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            f"{where} does not answer ({why}): it will be tried again; check the store and the network"
        )


class NoConditionalPutError(StoreError):
    reason = "NoConditionalPut"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"the server of {where} does not heed If-None-Match on PUT, so two drivers could overwrite each "
            "other: use a server with conditional writes (AWS S3, MinIO, versitygw, Ceph 19 or newer)"
        )


class NoSpaceError(StoreError):
    reason = "NoSpace"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"no space left for {where}: free some, raise its quota, or choose another checkpoint.location"
        )


class BadLocationError(StoreError):
    reason = "BadLocation"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"{url} cannot keep checkpoints ({why}): use file:///directory or s3://bucket/prefix"
        )


class SeedError(StoreError):
    """A run cannot be made from what it was to be made from."""

    reason = "SeedFailed"


class SavepointError(StoreError):
    """A savepoint cannot be taken, read, restored or removed as asked."""

    reason = "SavepointFailed"


class NothingToSaveError(SavepointError):
    """No query of the run has begun: there is no state."""

    reason = "NothingToSave"


class CheckpointDamagedError(SavepointError):
    """What Spark itself would need to go on is not there, or not readable."""

    reason = "CheckpointDamaged"


class SavepointDamagedError(SavepointError):
    reason = "SavepointDamaged"


class LineageError(SavepointError):
    """Batch numbers would no longer mean to a sink what they meant."""

    reason = "Lineage"
