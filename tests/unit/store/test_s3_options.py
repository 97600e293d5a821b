from __future__ import annotations

from pathlib import Path

import pytest

from headrace_jobs.store.errors import CredentialsFileError
from headrace_jobs.store.s3_credentials import FileCredentials
from headrace_jobs.store.s3_options import S3Options, options_in, spark_conf


def test_amazon_needs_no_settings_but_the_chain() -> None:
    conf = spark_conf(S3Options())
    assert "spark.hadoop.fs.s3a.endpoint" not in conf
    assert "spark.hadoop.fs.s3a.endpoint.region" not in conf
    assert conf["spark.hadoop.fs.s3a.aws.credentials.provider"].endswith("DefaultCredentialsProvider")


def test_another_server_is_reached_by_its_endpoint() -> None:
    conf = spark_conf(S3Options(endpoint="http://minio:9000", path_style=True))
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://minio:9000"
    assert conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert conf["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "us-east-1"
    tls = spark_conf(S3Options(endpoint="https://minio:9000", region="eu-west-1"))
    assert tls["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "true"
    assert tls["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"


def test_encryption_as_the_jvm_calls_it() -> None:
    def encryption(options: S3Options) -> list[str | None]:
        conf = spark_conf(options)
        assert options_in(conf) == options
        return [conf.get(f"spark.hadoop.fs.s3a.encryption.{name}") for name in ("algorithm", "key")]

    assert encryption(S3Options()) == [None, None]
    assert encryption(S3Options(encryption="SSE-S3")) == ["AES256", None]
    assert encryption(S3Options(encryption="SSE-KMS")) == ["SSE-KMS", None]
    assert encryption(S3Options(encryption="SSE-KMS", kms_key="arn:x")) == ["SSE-KMS", "arn:x"]


def test_the_way_back_from_sparks_settings() -> None:
    options = S3Options(
        endpoint="https://s3.example.com",
        region="eu-west-1",
        path_style=True,
        encryption="SSE-KMS",
        kms_key="alias/streams",
    )
    assert options_in(spark_conf(options)) == options
    ca = {"spark.hadoop.headrace.s3.ca.file": "/etc/ca.crt"}
    assert options_in(ca).ca_file == Path("/etc/ca.crt")


def test_no_setting_ever_holds_a_key(tmp_path: Path) -> None:
    options = S3Options(endpoint="http://x:1", credentials_file=tmp_path / "credentials")
    assert not [
        key for key in spark_conf(options) if key.endswith(("access.key", "secret.key", "session.token"))
    ]
    assert spark_conf(options)["spark.hadoop.headrace.s3.credentials.file"] == str(tmp_path / "credentials")
    assert spark_conf(options)["spark.hadoop.fs.s3a.aws.credentials.provider"].startswith("dev.headrace.")


def write(path: Path, access: str, secret: str) -> None:
    fresh = path.with_name("fresh")
    fresh.write_text(f"[default]\naws_access_key_id = {access}\naws_secret_access_key = {secret}\n")
    fresh.replace(path)


def test_replaced_keys_are_used_from_the_next_request_on(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    write(path, "A", "a%b=c")
    credentials = FileCredentials(path)
    assert credentials.get_frozen_credentials()[:2] == ("A", "a%b=c")
    write(path, "B", "b")
    assert credentials.get_frozen_credentials()[:2] == ("B", "b")
    path.unlink()
    assert credentials.get_frozen_credentials()[:2] == ("B", "b"), (
        "a Secret that is being swapped is no error"
    )


def test_a_bad_credentials_file_is_named_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    with pytest.raises(CredentialsFileError, match="cannot be read"):
        FileCredentials(path).get_frozen_credentials()
    path.write_text("[default]\naws_secret_access_key = hunter2\n")
    with pytest.raises(CredentialsFileError, match="in it has no 'aws_access_key_id'") as raised:
        FileCredentials(path).get_frozen_credentials()
    assert "hunter2" not in str(raised.value)
