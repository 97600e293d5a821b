"""The page on exactly-once sinks shows what the example does, word by word."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/how-to/exactly-once-sink.md").read_text()
JOB = (ROOT / "examples/exactly-once/job.py").read_text()
TABLES = (ROOT / "examples/exactly-once/tables.sql").read_text()


def test_the_code_is_that_of_the_example():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    # The example takes the table from its arguments, so that the tests can name one that is not there.
    example = JOB.replace('copy(f"COPY {args.table} ', 'copy("COPY windows ')
    claim, _, function = code.partition("CLAIM = ")[2].partition("\n\n\ndef ")
    assert claim in example
    assert function.strip() in example


def test_the_tables_have_the_columns_of_the_example():
    (sql,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for table in ("ledger_fence", "ledger"):
        assert _columns(sql, table) <= _columns(TABLES, table)
        assert _columns(sql, table)


def _columns(sql: str, table: str) -> set[str]:
    body = re.search(rf"CREATE TABLE {table} \((.*?)\);", sql, re.DOTALL)
    assert body is not None
    return set(re.findall(r"(\w+) +(?:text|bigint)", body[1])) | {
        re.search(r"PRIMARY KEY \(.*?\)", body[1])[0]
    }
