"""Times in the answers of S3. botocore can read one however it is written: that takes most of a listing.

A listing of a thousand objects holds a thousand times, all written in one way that Python itself reads.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from botocore.utils import parse_timestamp


def read_time(value: Any) -> datetime:
    """Whatever this does not know, botocore does."""
    if isinstance(value, str) and len(value) >= 20 and value[10] == "T":
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return parse_timestamp(value)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return parse_timestamp(value)
