"""As Hadoop reads a pattern of names."""

import pytest

from headrace_jobs.harness.file_names import names_like


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        (None, ["a", ""], []),
        ("*.json", ["a.json", ".json"], ["a.json.md5", "a.jsonl", "ajson"]),
        ("part-?.csv", ["part-1.csv"], ["part-12.csv", "part-.csv"]),
        ("*.{json,csv}", ["a.json", "b.csv"], ["a.jsoncsv", "a.xml"]),
        ("{a,b{c,d}}x", ["ax", "bcx", "bdx"], ["bx", "cx"]),
        ("[a-c]1", ["a1", "c1"], ["d1", "-1"]),
        ("[^a-c]1", ["d1"], ["a1"]),
        ("[!a]1", ["b1"], ["a1"]),
        (r"a\*b", ["a*b"], ["axb"]),
        ("a+b(c).d", ["a+b(c).d"], ["aab(c).d", "a+b(c)xd"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("[a", ["[a"], ["a"]),
        ("{a", ["whatever: Spark refuses such a pattern"], []),
    ],
)
def test_a_pattern_takes_the_names_that_are_like_it(
    pattern: str | None, taken: list[str], left: list[str]
) -> None:
    takes = names_like(pattern)
    assert [name for name in (*taken, *left) if takes(name)] == taken
