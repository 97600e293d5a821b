"""Trust stores for Java, as the keeper makes them. That Java takes them is a matter of tests/spark."""

import json
from pathlib import Path

import botocore
import pytest

from headrace_jobs.keeper.main import main
from headrace_jobs.keeper.trust import certificates

PUBLIC = Path(botocore.__file__).parent / "cacert.pem"


def make(tmp_path: Path, content: str) -> tuple[int, dict, Path]:
    bundle, result, target = tmp_path / "ca.crt", tmp_path / "result.json", tmp_path / "authorities.jks"
    bundle.write_text(content)
    code = main(["trust", f"--s3-ca={bundle}", f"--to={target}", f"--result={result}"])
    return code, json.loads(result.read_text()), target


@pytest.mark.parametrize("content", ["", "not a certificate", "-----BEGIN CERTIFICATE-----\n%%\n"])
def test_what_is_no_certificate_is_refused_with_the_field(content: str, tmp_path: Path):
    code, result, target = make(tmp_path, content)
    assert (code, result["reason"]) == (64, "Refused")
    assert result["message"].startswith("spec.checkpoint.s3.ca: there is no certificate")
    assert not target.exists()


def test_the_public_authorities_stay_trusted_beside_the_private_one(tmp_path: Path):
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    one = PUBLIC.read_text().partition(begin)[2].partition(end)[0]
    code, result, target = make(tmp_path, f"my own\n{begin}{one}{end}\n")
    assert (code, result["authorities"]) == (0, 1)
    public = certificates(PUBLIC)
    made = target.read_bytes()
    # Trusted once, although it is in both.
    assert int.from_bytes(made[8:12], "big") == len(public)
    assert all(made.count(certificate) == 1 for certificate in public)
    assert target.stat().st_mode & 0o044 == 0o044  # the driver is another user
