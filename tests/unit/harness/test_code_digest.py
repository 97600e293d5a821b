"""The digest of a function: its code and that of what it calls, not where it stands."""

import functools
import textwrap

from headrace_jobs.harness.code_digest import code_digest
from headrace_jobs.harness.failure import UserCode

OWN = UserCode().owns


def function(source, name="f", file="/app/job.py"):
    module = {"__name__": "job", "functools": functools}
    exec(compile(textwrap.dedent(source), file, "exec"), module)
    return module[name]


def digest(source, **where):
    return code_digest(function(source, **where), OWN)


PLAIN = "def f(x): return x * 2"


def test_file_lines_comments_docstrings_and_values_do_not_count():
    moved = "\n\n# words\ndef f(x):\n  'Twice.'\n  return x * 2"
    assert digest(PLAIN) == digest(moved, file="/other/place.py")
    assert digest("def f(x): print(x)") == digest("def f(x):\n  'Tells.'\n  print(x)")
    dated = "TODAY = {}\ndef f(x): return x + TODAY"
    assert digest(dated.format(1)) == digest(dated.format(2))


def test_code_counts_also_of_functions_inside_and_of_constants():
    others = [
        "def f(x): return x * 3",
        "def f(x): return x + 2",
        "def f(x): return x.a * 2",
        "def f(x):\n  def g(y): return y\n  return g(x) * 2",
        "def f(x):\n  def g(y): return -y\n  return g(x) * 2",
        "def f(x): return x in {1, 2}",
        "def f(x): return x in {1, 3}",
    ]
    digests = [digest(PLAIN), *map(digest, others)]
    assert len(set(digests)) == len(digests)


def test_what_it_calls_counts():
    calling = "def g(x): return x {}\ndef f(x): return g(x)"
    assert digest(calling.format("+ 1")) != digest(calling.format("+ 2"))
    closed = "def make():\n  g = lambda x: x {}\n  return lambda x: g(x)\nf = make()"
    assert digest(closed.format("+ 1")) != digest(closed.format("+ 2"))
    recursive = "def f(x): return f(x - 1) if x else 0"
    assert digest(recursive) == digest(recursive)


def test_what_a_library_wraps_counts():
    wrapped = "def g(x): return x {}\nf = functools.partial(g)"
    assert digest(wrapped.format("+ 1")) != digest(wrapped.format("+ 2"))
    assert digest("f = len") == digest("f = len")
