"""Texts that are not YAML, or hold no manifest."""

from __future__ import annotations

from tests.manifest_cases.builders import BadText

GOOD_TEXT = """\
apiVersion: headrace.dev/v1alpha1
kind: StreamJob
metadata:
  name: orders
spec:
  application:
    file: job.py
    args: [--window, 1m]
  executors:
    count: 2
    memory: 4Gi
"""


def _text(old: str, new: str) -> str:
    assert old in GOOD_TEXT
    return GOOD_TEXT.replace(old, new)


BAD_TEXTS: tuple[BadText, ...] = (
    BadText("a tab", _text("    file:", "\tfile:"), 7, "tab"),
    BadText("no space after the colon", _text("count: 2", "count:2"), 10, "no space after the ':'"),
    BadText("an open quote", _text("file: job.py", 'file: "job.py'), 7, "not closed"),
    BadText("an open bracket", _text("1m]", "1m"), 8, "not closed"),
    BadText("a stray bracket", _text("memory: 4Gi", "memory: 4Gi}"), 11, "amount of memory"),
    BadText("a key twice", _text("count: 2\n", "count: 2\n    count: 3\n"), 11, "count is there twice"),
    BadText(
        "a key twice in braces",
        _text(
            "executors:\n    count: 2\n    memory: 4Gi\n", "executors: {count: 2, memory: 4Gi, count: 5}\n"
        ),
        9,
        "count is there twice",
    ),
    BadText(
        "a section twice",
        GOOD_TEXT + "  application:\n    file: other.py\n",
        12,
        "application is there twice",
    ),
    BadText("a crooked indent", _text("    memory:", "   memory:"), 11, "indented differently"),
    BadText("a colon in a value", _text("file: job.py", "file: a: job.py"), 7, "needs quotes"),
    BadText("no colon", _text("executors:", "executors"), 9, "no ':' after the key"),
    BadText("an at sign", _text("4Gi", "@4Gi"), 11, "meaning of its own"),
    BadText("an alias of nothing", _text("4Gi", "*4Gi"), 11, "meaning of its own"),
    BadText("a foreign tag", _text("4Gi", "!mem 4Gi"), 11, "tag"),
    BadText(
        "an object of Python", _text("4Gi", "!!python/object/apply:os.getcwd []"), 11, "amount of memory"
    ),
    BadText("an alias of itself", GOOD_TEXT + "  driver: &d\n    patch: *d\n", 13, "contains itself"),
    BadText("a control character", _text("4Gi", "4Gi\x00"), 11, "does not allow"),
    BadText("nothing", "", 1, "nothing in this file"),
    BadText("only a comment", "# to do\n", 1, "nothing in this file"),
    BadText("only separators", "---\n---\n", 1, "nothing in this file"),
    BadText("a list", "- a\n- b\n", 1, "is a list"),
    BadText("prose", "hello world\n", 1, "single value"),
    BadText("no YAML at all", "%%% {{{\n", 1, ""),
    BadText("another kind", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", 1, "no StreamJob"),
    BadText("two jobs", f"{GOOD_TEXT}---\n{GOOD_TEXT}", 13, "second StreamJob"),
    BadText(
        "a mistake in the second document",
        f"kind: X\napiVersion: y/v1\n---\n{_text('4Gi', '4GB')}",
        14,
        "4GB",
    ),
)
