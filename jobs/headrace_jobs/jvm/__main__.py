"""Makes Headrace's jar, or fetches the jars of connectors.

`python -m headrace_jobs.jvm [--if-stale]`
`python -m headrace_jobs.jvm --connector s3a [--connector kafka] [--into DIRECTORY]`
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from headrace_jobs.jvm.build import BuildFailed, build, jar_path
from headrace_jobs.jvm.jars import JarsError, connector_jars
from headrace_jobs.jvm.java import JavaMissing


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m headrace_jobs.jvm", description=__doc__)
    parser.add_argument("--if-stale", action="store_true", help="do nothing when the jar is up to date")
    parser.add_argument(
        "--connector", action="append", default=[], help="fetch this connector's jars instead"
    )
    parser.add_argument("--into", type=Path, help="copy them there; otherwise their paths are printed")
    arguments = parser.parse_args(argv)
    try:
        if arguments.connector:
            _fetch(arguments.connector, arguments.into)
        elif build(if_stale=arguments.if_stale):
            sys.stderr.write(f"made {jar_path()}\n")
    except (BuildFailed, JavaMissing, JarsError) as problem:
        sys.stderr.write(f"headrace_jobs.jvm: {problem}\n")
        return 1
    return 0


def _fetch(connectors: list[str], into: Path | None) -> None:
    for jar in (jar for connector in connectors for jar in connector_jars(connector)):
        if into is None:
            sys.stdout.write(f"{jar}\n")
        else:
            into.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(jar, into / jar.name)


if __name__ == "__main__":
    sys.exit(main())
