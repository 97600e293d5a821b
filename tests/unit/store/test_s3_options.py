from __future__ import annotations

import traceback
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
    assert options_in(spark_conf(options)).credentials_file == tmp_path / "credentials"


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
    with pytest.raises(CredentialsFileError, match="it is missing"):
        FileCredentials(path).get_frozen_credentials()
    for content, says in (
        (b"[default]\naws_secret_access_key = hunter2\n", "in it has no 'aws_access_key_id'"),
        (b"aws_secret_access_key = hunter2\n", "not in the AWS profile format"),
        (b"[default]\nhunter2\n", "not in the AWS profile format"),
        (b"hunter2\xff", "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(CredentialsFileError, match=says) as raised:
            FileCredentials(path).get_frozen_credentials()
        assert "hunter2" not in "".join(traceback.format_exception(raised.value))


class MountedSecret:
    """Files as the kubelet lays them out: all are swapped at once, by one link."""

    def __init__(self, directory: Path) -> None:
        self.directory, self._versions = directory, 0
        directory.mkdir()

    def hold(self, **files: str) -> None:
        self._versions += 1
        version = self.directory / f"..version_{self._versions}"
        version.mkdir()
        for name, text in files.items():
            (version / name).write_text(text)
            link = self.directory / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        fresh = self.directory / "..data_tmp"
        fresh.symlink_to(version.name)
        fresh.replace(self.directory / "..data")


def test_a_rotated_secret_is_used_from_the_next_request_on(tmp_path: Path) -> None:
    secret = MountedSecret(tmp_path / "keys")
    secret.hold(access_key_id="A", secret_access_key="a%b=c\n")
    credentials = FileCredentials(secret.directory)
    assert credentials.get_frozen_credentials()[:3] == ("A", "a%b=c", None)
    secret.hold(access_key_id="B", secret_access_key="b", session_token="t")
    assert credentials.get_frozen_credentials()[:3] == ("B", "b", "t")
    (secret.directory / "..data").unlink()
    assert credentials.get_frozen_credentials()[:3] == ("B", "b", "t"), "a Secret that is swapped is no error"


def test_keys_of_two_versions_never_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = MountedSecret(tmp_path / "keys")
    secret.hold(access_key_id="A", secret_access_key="a")
    credentials = FileCredentials(secret.directory)
    really_read = Path.read_text

    def rotated_meanwhile(path: Path, **how: str) -> str:
        text = really_read(path, **how)
        if path.name == "access_key_id" and text == "A":
            secret.hold(access_key_id="B", secret_access_key="b")
        return text

    monkeypatch.setattr(Path, "read_text", rotated_meanwhile)
    assert credentials.get_frozen_credentials()[:2] == ("A", "a")
    assert credentials.get_frozen_credentials()[:2] == ("B", "b")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "access_key_id is .*it is missing"),
        ({"access_key_id": "hunter2"}, "secret_access_key is .*it is missing"),
        (
            {"access_key_id": "hunter2", "secret_access_key": "\n"},
            "secret_access_key is .*it is empty",
        ),
    ],
)
def test_a_key_that_is_not_in_the_secret_is_named(tmp_path: Path, files: dict[str, str], says: str) -> None:
    secret = MountedSecret(tmp_path / "keys")
    secret.hold(**files)
    with pytest.raises(CredentialsFileError, match=says) as raised:
        FileCredentials(secret.directory).get_frozen_credentials()
    assert "hunter2" not in str(raised.value)
