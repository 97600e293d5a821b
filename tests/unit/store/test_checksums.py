"""Spark's checksums of state files, as Spark itself writes them."""

from __future__ import annotations

import random

import pytest

from headrace_jobs.store.checksums import crc32c, expected
from headrace_jobs.store.errors import CheckpointDamagedError


def bit_by_bit(content: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in content:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("content", "value"),
    # RFC 3720, B.4, and the check value of the algorithm.
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"", 0),
    ],
)
def test_known_values(content: bytes, value: int) -> None:
    assert crc32c([content]) == value


@pytest.mark.parametrize("size", [1, 4095, 8191, 8192, 8193, 12_288, 40_961])
def test_stripes_come_to_the_same_as_bits(size: int) -> None:
    content = random.Random(size).randbytes(size)
    assert crc32c([content]) == bit_by_bit(content)


def test_pieces_come_to_the_same_as_the_whole() -> None:
    content = random.Random(7).randbytes(50_000)
    for cut in (0, 1, 8192, 49_999):
        assert crc32c([content[:cut], content[cut:]]) == crc32c([content])


def test_what_spark_writes_beside_a_file() -> None:
    told = b'{"algorithm":"CRC32C","value":-486108541,"mainFileSize":9,"timestampMs":1,"creator":{}}'
    assert expected("1.changelog.crc", told) == crc32c([b"123456789"])
    assert expected("1.changelog.crc", b'{"algorithm":"CRC64","value":1}') is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"algorithm":"CRC32C","value":"x"}'])
def test_what_is_no_checksum_is_said_so(content: bytes) -> None:
    with pytest.raises(CheckpointDamagedError, match=r"1\.zip\.crc is no checksum"):
        expected("1.zip.crc", content)
