from __future__ import annotations

from tests.spark.checkpoint.conftest import place, s3_keys, s3_server

__all__ = ["place", "s3_keys", "s3_server"]
