"""Spark's checksums of state files (`<file>.crc`, format v2), compared without Spark.

The standard library has no CRC-32C, and a loop over bytes takes two minutes for a gigabyte. So a block is cut
into many equal stripes that go forward together, a byte of each at a time, with operations on whole rows of
bytes; at the end the stripes are joined. Pure: contents come in.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence

from headrace_jobs.store.errors import CheckpointDamagedError

_POLYNOMIAL = 0x82F63B78
_STRIPES = 4096
_ALL_ONES = 0xFFFFFFFF
_ALGORITHM = "CRC32C"


def _table() -> list[int]:
    entries: list[int] = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)  # noqa: PLW2901 - the register
        entries.append(value)
    return entries


_TABLE = _table()
# The same by bytes of the result, lowest first, for rows of bytes.
_PLANES = [bytes(entry >> shift & 0xFF for entry in _TABLE) for shift in (0, 8, 16, 24)]


def crc32c(pieces: Iterable[bytes]) -> int:
    register = _ALL_ONES
    for piece in pieces:
        register = _forward(register, piece)
    return register ^ _ALL_ONES


def expected(key: str, content: bytes) -> int | None:
    """What a `.crc` file says of the file beside it; None for an algorithm that is not known here."""
    try:
        told = json.loads(content)
        return told["value"] & _ALL_ONES if told["algorithm"] == _ALGORITHM else None
    except (ValueError, KeyError, TypeError):
        raise CheckpointDamagedError(
            f"{key} is no checksum: the query itself could not start from it"
        ) from None


def _forward(register: int, block: bytes) -> int:
    steps = len(block) // _STRIPES
    if steps > 1:
        ends = _stripes(register, block, steps)
        register = ends[0]
        for end in ends[1:]:
            register = _apply(_over_zeros(steps), register) ^ end
        block = block[steps * _STRIPES :]
    for byte in block:
        register = _TABLE[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register


def _stripes(register: int, block: bytes, steps: int) -> list[int]:
    """The registers after each stripe alone, of which the first begins where the block does."""
    # One plane for each byte of the registers, all stripes side by side, as one large number.
    low, second, third, high = (register >> shift & 0xFF for shift in (0, 8, 16, 24))
    for step in range(steps):
        column = int.from_bytes(block[step : steps * _STRIPES : steps], "little")
        index = (column ^ low).to_bytes(_STRIPES, "little")
        zeroth, first, middle, last = (int.from_bytes(index.translate(plane), "little") for plane in _PLANES)
        low, second, third, high = zeroth ^ second, first ^ third, middle ^ high, last
    rows = [plane.to_bytes(_STRIPES, "little") for plane in (low, second, third, high)]
    return [int.from_bytes(bytes(one), "little") for one in zip(*rows, strict=True)]


@functools.cache
def _over_zeros(steps: int) -> tuple[int, ...]:
    """What that many bytes of zero make of each bit of the register. It is linear, so that says it all."""
    one = tuple(_TABLE[bit & 0xFF] ^ (bit >> 8) for bit in (1 << number for number in range(32)))
    result, power = tuple(1 << number for number in range(32)), one
    while steps:
        if steps & 1:
            result = tuple(_apply(power, bit) for bit in result)
        power = tuple(_apply(power, bit) for bit in power)
        steps >>= 1
    return result


def _apply(matrix: Sequence[int], register: int) -> int:
    result = 0
    while register:
        lowest = register & -register
        result ^= matrix[lowest.bit_length() - 1]
        register ^= lowest
    return result
