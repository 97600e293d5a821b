"""Spark's S3 connector for images that have none: Headrace carries one for each line of Hadoop.

A plain Spark image cannot reach S3, where checkpoints are. What an image brings itself is never replaced.
"""

from __future__ import annotations

import re
from pathlib import Path

# Beside the harness, where the init container has put both: connectors/s3a-hadoop-<version>/*.jar
CARRIED = Path(__file__).resolve().parents[2] / "connectors"
_HADOOP = re.compile(r"hadoop-client-api-(.+)\.jar")


class NoConnector(Exception):
    """The image cannot reach the store; the message says what to do."""


def s3_jars(store: str, spark_jars: Path, carried: Path = CARRIED) -> list[Path]:
    """The jars to add to Spark's own for this store: none where nothing is carried or nothing is missing."""
    if not store.startswith("s3://") or any(spark_jars.glob("hadoop-aws-*.jar")) or not carried.is_dir():
        return []
    hadoop = next((found[1] for jar in spark_jars.iterdir() if (found := _HADOOP.match(jar.name))), "none")
    jars = sorted((carried / f"s3a-hadoop-{hadoop}").glob("*.jar"))
    if not jars:
        known = ", ".join(
            sorted(each.name.removeprefix("s3a-hadoop-") for each in carried.glob("s3a-hadoop-*"))
        )
        raise NoConnector(
            f"the checkpoints are in S3, and the image's Spark has no hadoop-aws; Headrace brings it for "
            f"Hadoop {known}, but this Spark has Hadoop {hadoop}. Add hadoop-aws {hadoop} and its AWS SDK to "
            "the image"
        )
    return jars
