"""The pytest plugin. Every pytest run where Headrace is installed loads it, so it imports next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace_jobs.testing.job import JobTest
    from headrace_jobs.testing.spark import TestSpark


@pytest.fixture(scope="session")
def headrace_spark() -> Iterator[TestSpark]:
    """One Spark for all tests: it takes seconds to start."""
    from headrace_jobs.testing.spark import TestSpark  # noqa: PLC0415 - only tests that ask for it pay for it

    spark = TestSpark.start()
    yield spark
    spark.close()


@pytest.fixture
def headrace(request: pytest.FixtureRequest, tmp_path: Path, headrace_spark: TestSpark) -> JobTest:
    """Runs manifests on given rows: `headrace.run("job.yaml", inputs={"orders": [...]})`."""
    from headrace_jobs.testing.job import JobTest  # noqa: PLC0415

    return JobTest(headrace_spark, scratch=tmp_path, look_in=(request.path.parent, request.config.rootpath))
