"""Tests for jobs: a pytest fixture `headrace` that runs a manifest on given rows.

def test_revenue(headrace):
    orders = [[{"id": 1, "price": 5, "at": "2024-05-01T10:00:00Z"}]]
    result = headrace.run("job.yaml", inputs={"orders": orders})
    assert result["revenue"].rows == [...]

See docs/how-to/test-a-job.md.
"""

from headrace_jobs.testing.inputs import InputProblem, Stream
from headrace_jobs.testing.results import JobResult, QueryResult, StepResult

__all__ = ["InputProblem", "JobResult", "QueryResult", "StepResult", "Stream"]
