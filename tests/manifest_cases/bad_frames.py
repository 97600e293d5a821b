"""What is around the spec: version, kind, metadata."""

from __future__ import annotations

from tests.manifest_cases.builders import Bad, a_job, a_savepoint, having, spec, without

BAD_FRAMES = [
    Bad(
        "a kind in the wrong case",
        having(a_job(), "Streamjob", "kind"),
        "kind",
        "StreamJob",
        (("kind",), "StreamJob"),
    ),
    Bad(
        "another version",
        having(a_job(), "headrace.dev/v1", "apiVersion"),
        "apiVersion",
        "headrace.dev/v1alpha1",
        (("apiVersion",), "headrace.dev/v1alpha1"),
    ),
    Bad(
        "no apiVersion",
        without(a_job(), "apiVersion"),
        "apiVersion",
        "is missing",
        (("apiVersion",), "headrace.dev/v1alpha1"),
    ),
    Bad("no kind", without(a_job(), "kind"), "kind", "is missing", (("kind",), "StreamJob")),
    Bad(
        "no metadata",
        without(a_job(), "metadata"),
        "metadata",
        "is missing",
        (("metadata", "name"), "orders"),
    ),
    Bad(
        "no name",
        having(a_job(), {}, "metadata"),
        "metadata.name",
        "is missing",
        (("metadata", "name"), "orders"),
    ),
    Bad("no spec", without(a_job(), "spec"), "spec", "is missing", (spec("application", "file"), "job.py")),
    Bad(
        "labels misspelt",
        having(a_job(), {"name": "orders", "lables": {"team": "web"}}, "metadata"),
        "metadata.lables",
        "no such field",
        (("metadata", "labels"), {"team": "web"}),
        server="accepts",
    ),
    Bad(
        "a label that is a number",
        having(a_job(), {"a": 1}, "metadata", "labels"),
        "metadata.labels.a",
        "text",
        (("metadata", "labels", "a"), "1"),
    ),
    Bad("a list with one manifest", [a_job()], "document", "is a list", (("kind",), "StreamJob")),
    Bad("a text", "hello", "document", "single value", (("kind",), "StreamJob")),
    Bad(
        "a list for a spec",
        having(a_job(), [1], "spec"),
        "spec",
        "is a list",
        (spec("application", "file"), "job.py"),
    ),
    Bad(
        "a name that is too long",
        having(a_job(), "a-very-long-name-that-cannot-fit-at-all", "metadata", "name"),
        "metadata.name",
        "34",
        (("metadata", "name"), "a-very-long-name-that-cannot-fit-a"),
        rule="StreamJob.name_fits",
    ),
    Bad(
        "a name with capitals",
        having(a_job(), "My_Job", "metadata", "name"),
        "metadata.name",
        "job name",
        (("metadata", "name"), "my-job"),
    ),
    Bad(
        "a name that starts with a digit",
        having(a_job(), "2nd-try", "metadata", "name"),
        "metadata.name",
        "starting with a letter",
        (("metadata", "name"), "nd-try"),
        rule="StreamJob.name_fits",
    ),
    Bad(
        "a savepoint's name that is too long",
        having(a_savepoint(), "s" * 64, "metadata", "name"),
        "metadata.name",
        "63",
        (("metadata", "name"), "s" * 63),
        rule="StreamSavepoint.name_fits",
    ),
]
