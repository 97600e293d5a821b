"""A run begins with what lies at a URL: a savepoint or a checkpoint, in this store or in another one."""

from __future__ import annotations

from itertools import takewhile

from headrace_jobs.store.errors import BadLocationError
from headrace_jobs.store.opening import open_store
from headrace_jobs.store.s3_options import S3Options
from headrace_jobs.store.savepoints.adopt import adopt_checkpoint
from headrace_jobs.store.savepoints.lineage import Wish
from headrace_jobs.store.savepoints.manifest import has_manifest
from headrace_jobs.store.savepoints.pacing import Pace
from headrace_jobs.store.savepoints.restore import restore_savepoint
from headrace_jobs.store.savepoints.transfer import Tell
from headrace_jobs.store.seed import Seed


def seed_from(
    source: str,
    *,
    store: str,
    run: str,
    lineage: Wish,
    job: str = "",
    query: str | None = None,
    s3: S3Options | None = None,
    pace: Pace | None = None,
    tell: Tell | None = None,
) -> Seed:
    """`source` is a URL, or a path below `store`, which is the URL of the job's place; so is `run`."""
    target = _named_once(store)
    url = _named_once(source) if "://" in source else f"{target}/{source.strip('/')}"
    above, _, last = url.rpartition("/")
    if above.endswith("/") or not last:
        raise BadLocationError(url, "a savepoint or a checkpoint is a directory, and this is a whole store")
    root, into = common_root(target, above), None
    if root is not None:
        run = f"{target.removeprefix(root)}/{run}".lstrip("/")
    else:
        root, into = above, open_store(target, s3)
    there, path = open_store(root, s3), url.removeprefix(root).lstrip("/")
    if has_manifest(there, path):
        return restore_savepoint(
            there,
            savepoint=path,
            run=run,
            lineage=lineage,
            job=job,
            into=into,
            pace=pace,
            tell=tell,
            replace=True,
        )
    return adopt_checkpoint(
        there,
        checkpoint=path,
        run=run,
        lineage=lineage,
        job=job,
        query=query,
        into=into,
        pace=pace,
        tell=tell,
        replace=True,
    )


def _named_once(url: str) -> str:
    """Hadoop says s3a:// for what everybody else calls s3://, and it is the same place."""
    plain = url.rstrip("/")
    return f"s3://{plain.removeprefix('s3a://')}" if plain.startswith("s3a://") else plain


def common_root(one: str, other: str) -> str | None:
    """The deepest place that holds both, so that the server can copy; None between two buckets."""
    if one == other:
        return one
    parts = list(
        takewhile(lambda pair: pair[0] == pair[1], zip(one.split("/"), other.split("/"), strict=False))
    )
    # scheme, nothing, bucket (or nothing and a first directory)
    shortest = 3 if one.startswith("s3") else 4
    return "/".join(part for part, _ in parts) if len(parts) >= shortest else None
