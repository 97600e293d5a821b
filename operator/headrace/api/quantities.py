"""Durations and amounts of memory: strings in the manifest, numbers in the code."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, ClassVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from headrace.api.forms import EXAMPLE_KEY, Form


class _Formed(str):
    """A text that has one form in every field."""

    __slots__ = ()
    form: ClassVar[Form]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda value: cls(cls.form.check(value)))

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return cls.form.json_schema()


_UNIT_SECONDS = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}

_SPOKEN_UNITS = {
    "ms": "0.001", "msec": "0.001", "millis": "0.001", "millisecond": "0.001", "milliseconds": "0.001",
    "s": "1", "sec": "1", "secs": "1", "second": "1", "seconds": "1", "": "1",
    "m": "60", "min": "60", "mins": "60", "minute": "60", "minutes": "60",
    "h": "3600", "hr": "3600", "hrs": "3600", "hour": "3600", "hours": "3600",
    "d": "86400", "day": "86400", "days": "86400",
    "w": "604800", "week": "604800", "weeks": "604800",
}  # fmt: skip


def _duration_from_speech(value: object) -> str | None:
    """`30`, `"30 seconds"`, `"5min"`, `"7d"`, `"1.5h"`: what people write for a duration."""
    text = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", text)
    if not parts or any(unit not in _SPOKEN_UNITS for _, unit in parts):
        return None
    seconds = sum((Decimal(number) * Decimal(_SPOKEN_UNITS[unit]) for number, unit in parts), Decimal(0))
    return duration_text(seconds)


def duration_text(seconds: Decimal | float) -> str:
    """The shortest way to write a duration: 5400 → `1h30m`."""
    milliseconds = int(Decimal(str(seconds)) * 1000)
    text = ""
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        text += f"{count}{unit}" if count else ""
    return text


DURATION = Form(
    expects="a duration like 30s, 5m or 1h30m",
    # Without days: so that the API server's own duration() can compare them. Without zero: no field means it.
    pattern=r"^([1-9][0-9]{0,6}h)?([1-9][0-9]{0,6}m)?([1-9][0-9]{0,6}s)?([1-9][0-9]{0,6}ms)?$",
    example="30s",
    min_length=2,
    max_length=32,
    suggest=_duration_from_speech,
)


class Duration(_Formed):
    """A length of time such as `90s` or `1h30m`."""

    __slots__ = ()
    form = DURATION

    @property
    def seconds(self) -> float:
        parts = re.findall(r"([0-9]+)(ms|h|m|s)", self)
        return float(sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts))


_MEMORY_BYTES = {
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
}  # fmt: skip


def _memory_from_speech(value: object) -> str | None:
    """`"4GB"`, `"4g"` (Spark's way), `"512 mb"`, `4096` (megabytes, as Spark reads it)."""
    text = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?(?:ytes)?", text)
    if parts is None:
        return None
    number, letter = parts[1], parts[2].upper() or "M"
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}{letter}i"


MEMORY = Form(
    expects="an amount of memory with its unit, like 512Mi or 4Gi",
    # The unit is required: a bare number means bytes to Kubernetes and mebibytes to Spark.
    pattern=r"^[1-9][0-9]{0,11}(\.[0-9]{1,3})?(Ki|Mi|Gi|Ti|k|M|G|T)$",
    example="4Gi",
    min_length=2,
    max_length=20,
    suggest=_memory_from_speech,
)


class Memory(_Formed):
    """An amount of memory such as `512Mi` or `4Gi`, always with its unit."""

    __slots__ = ()
    form = MEMORY

    @property
    def bytes(self) -> int:
        number, unit = re.findall(r"([0-9.]+)([A-Za-z]+)", self)[0]
        return int(Decimal(number) * _MEMORY_BYTES[unit])

    @property
    def mebibytes(self) -> int:
        return self.bytes // 2**20


def _quantity_from_speech(value: object) -> str | None:
    if isinstance(value, float):
        try:
            return str(Decimal(str(value)).normalize())
        except InvalidOperation:
            return None
    if isinstance(value, str) and re.fullmatch(r"[0-9.]+\s*[kKmMgGtT][iI]?[bB]", value.strip()):
        return _memory_from_speech(value)
    text = (
        re.fullmatch(r"([0-9.]+)\s*(cores?|cpus?)?", value.strip().lower())
        if isinstance(value, str)
        else None
    )
    return text[1] if text else None


_QUANTITY = Form(
    expects='a Kubernetes quantity like 2, "500m" or 1Gi',
    pattern=r"^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
    example="1",
    max_length=32,
    suggest=_quantity_from_speech,
)


class _QuantityForm:
    """Kubernetes lets a quantity be written as a whole number: `nvidia.com/gpu: 1`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: object) -> str:
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            return _QUANTITY.check(str(value) if whole else value)

        return core_schema.no_info_plain_validator_function(check)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "x-kubernetes-int-or-string": True,
            "maxLength": _QUANTITY.max_length,
            "pattern": _QUANTITY.pattern,
            EXAMPLE_KEY: _QUANTITY.example,
        }


Quantity = Annotated[str, _QuantityForm()]


def memory_text(size: int) -> str:
    """Bytes as whole mebibytes."""
    return f"{max(size // 2**20, 1)}Mi"
