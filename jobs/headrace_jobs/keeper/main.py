"""The command line: one task, one result. The operator reads the result as the container's last words."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace_jobs.keeper.check import earlier_lineage
from headrace_jobs.keeper.fetch import Source, fetch_files
from headrace_jobs.keeper.savepoints import add_tasks
from headrace_jobs.keeper.trust import NoCertificates, write_trust_store
from headrace_jobs.store import StoreError, open_store, remove_runs, seed_after_trial, seed_run
from headrace_jobs.store.s3_options import S3Options

log = logging.getLogger("headrace")

# The exit codes of the harness, as far as a keeper can end so.
_REFUSED, _STORE_UNAVAILABLE = 64, 69


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s headrace %(levelname)s: %(message)s")
    try:
        code, result = arguments.task(arguments, _s3_options(arguments))
    except StoreError as error:
        code = _STORE_UNAVAILABLE
        result = {"reason": "StoreUnavailable", "errorClass": error.reason, "message": str(error)}
    if code != 0:
        log.error("%s", result["message"])
    arguments.result.write_text(json.dumps(result), encoding="utf-8")
    return code


def check(arguments: argparse.Namespace, s3: S3Options) -> tuple[int, dict[str, Any]]:
    jobs, _, job = arguments.store.rpartition("/")
    open_store(f"{arguments.store}/{arguments.lineage}", s3).probe()
    found = earlier_lineage(open_store(jobs, s3), job=job, own_uid=arguments.lineage, run=arguments.run)
    if found is None:
        return 0, {"reason": "Completed", "message": ""}
    return _REFUSED, {
        "reason": "Refused",
        "errorClass": "EarlierLineage",
        "message": f"the store holds state of an earlier {job} ({found.uid}). Say spec.startFrom "
        "{latest: true} to go on from it, or {none: true} to begin anew",
        "earlier": {"uid": found.uid, "lastRun": found.last_run},
    }


def seed(arguments: argparse.Namespace, s3: S3Options) -> tuple[int, dict[str, Any]]:
    store = open_store(arguments.store, s3)
    # From another lineage, the job begins with it; from its own, it goes on.
    begins = arguments.source.split("/")[0] != arguments.target.split("/")[0]
    done = seed_run(store, arguments.source, arguments.target, code_of=arguments.code_of, begins=begins)
    return 0, {"reason": "Completed", "message": "", "seed": asdict(done)}


def rollback(arguments: argparse.Namespace, s3: S3Options) -> tuple[int, dict[str, Any]]:
    done = seed_after_trial(
        open_store(arguments.store, s3),
        incumbent=arguments.incumbent,
        candidate=arguments.source,
        to_run=arguments.target,
        rewind=arguments.rewind,
        code_of=arguments.code_of,
    )
    return 0, {"reason": "Completed", "message": "", "seed": asdict(done)}


def fetch(arguments: argparse.Namespace, s3: S3Options) -> tuple[int, dict[str, Any]]:
    run = f"{arguments.lineage}/run-{arguments.run}"
    if arguments.candidate is not None:
        run = f"{arguments.lineage}/rehearsal-{arguments.run}/candidate-{arguments.candidate}"
    sources = [Source(*given) for given in arguments.source]
    files = fetch_files(
        open_store(arguments.store, s3), run, sources, arguments.to, lambda url: open_store(url, s3)
    )
    return 0, {"reason": "Completed", "message": "", "files": len(files)}


def trust(arguments: argparse.Namespace, _s3: S3Options) -> tuple[int, dict[str, Any]]:
    try:
        number = write_trust_store(arguments.s3_ca, arguments.to)
    except NoCertificates:
        return _REFUSED, {
            "reason": "Refused",
            "message": "spec.checkpoint.s3.ca: there is no certificate under its key: put a PEM bundle there",
        }
    return 0, {"reason": "Completed", "message": "", "authorities": number}


def delete(arguments: argparse.Namespace, s3: S3Options) -> tuple[int, dict[str, Any]]:
    removed = remove_runs(open_store(arguments.store, s3), arguments.lineage)
    return 0, {"reason": "Completed", "message": "", "removed": len(removed)}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m headrace_jobs.keeper", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--result", type=Path, required=True, help="file for the result, as JSON")
    common.add_argument("--s3-endpoint")
    common.add_argument("--s3-region")
    common.add_argument("--s3-encryption", choices=("SSE-S3", "SSE-KMS"))
    common.add_argument("--s3-kms-key")
    common.add_argument("--s3-path-style", action="store_true")
    common.add_argument("--s3-ca", type=Path, help="PEM file with the authorities of the endpoint")
    common.add_argument("--s3-credentials", type=Path, help="directory with a file for each key")
    stored = argparse.ArgumentParser(add_help=False, parents=[common])
    stored.add_argument("--store", required=True, help="<location>/<namespace>/<name>: all lineages of a job")
    tasks = parser.add_subparsers(required=True, metavar="TASK")
    checking = tasks.add_parser("check", parents=[stored], help="is the store usable, and empty?")
    checking.add_argument("--lineage", required=True, help="uid of the job")
    checking.add_argument("--run", type=int, required=True)
    checking.set_defaults(task=check)
    copying = argparse.ArgumentParser(add_help=False, parents=[stored])
    copying.add_argument("--from", dest="source", required=True, help="<uid>/run-<n>")
    copying.add_argument("--to", dest="target", required=True, help="<uid>/run-<n>")
    copying.add_argument("--code-of", help="<uid>/run-<n>: the run whose copies of files are taken over")
    seeding = tasks.add_parser("seed", parents=[copying], help="copy the state of one run into another")
    seeding.set_defaults(task=seed)
    returning = tasks.add_parser(
        "rollback", parents=[copying], help="the same after a trial: store/rollback.py"
    )
    returning.add_argument("--incumbent", required=True, help="<uid>/run-<n>: its end is the handover point")
    returning.add_argument(
        "--rewind", action="store_true", help="back to the handover point, as a new lineage"
    )
    returning.set_defaults(task=rollback)
    deleting = tasks.add_parser("delete", parents=[stored], help="remove the runs of a job")
    deleting.add_argument("--lineage", required=True, help="uid of the job")
    deleting.set_defaults(task=delete)
    fetching = tasks.add_parser("fetch", parents=[stored], help="the application's files, pinned for a run")
    fetching.add_argument("--lineage", required=True, help="uid of the job")
    fetching.add_argument("--run", type=int, required=True)
    fetching.add_argument("--candidate", type=int, help="for a rehearsal of the run: kept apart from it")
    fetching.add_argument("--to", type=Path, required=True, help="directory to put them into")
    fetching.add_argument("--source", nargs=3, action="append", metavar=("FIELD", "PLACE", "URL"), default=[])
    fetching.set_defaults(task=fetch)
    trusting = tasks.add_parser("trust", parents=[common], help="make a trust store for Java")
    trusting.add_argument("--to", type=Path, required=True, help="the file to make")
    trusting.set_defaults(task=trust)
    add_tasks(tasks, stored)
    return parser


def _s3_options(arguments: argparse.Namespace) -> S3Options:
    return S3Options(
        endpoint=arguments.s3_endpoint,
        region=arguments.s3_region,
        path_style=arguments.s3_path_style,
        encryption=arguments.s3_encryption,
        kms_key=arguments.s3_kms_key,
        ca_file=arguments.s3_ca,
        credentials_file=arguments.s3_credentials,
    )
