"""Who may work on a savepoint. Each try has a claim of its own, and with it a directory of its own.

A copier that gives up says so in its claim. One that was killed, or sleeps somewhere, says nothing: whoever
removes the savepoint must expect it to come back.
"""

from __future__ import annotations

import json
from typing import Any

from headrace_jobs.store.errors import NotFoundError, SavepointError
from headrace_jobs.store.interface import Store
from headrace_jobs.store.savepoints.manifest import CLAIMS, MANIFEST, decode


def claim(store: Store, savepoint: str, owner: str) -> int | None:
    """The number of this try, or None where the owner's savepoint is finished already."""
    check_name(savepoint)
    while True:
        newest = newest_claim(store, savepoint)
        if newest is not None:
            holder = owner_of(store, savepoint, newest)
            if holder not in (None, owner):
                raise SavepointError(
                    f"{store.url}/{savepoint} is a savepoint of another owner ({holder}): choose another name"
                )
        if _is_finished(store, savepoint):
            return None
        number = 1 if newest is None else newest + 1
        body = json.dumps({"owner": owner}).encode()
        if store.put_if_absent(f"{savepoint}/{CLAIMS}/{number}", body):
            return number


def give_up(store: Store, savepoint: str, number: int, owner: str) -> None:
    """This try is over: it will write nothing any more."""
    store.put(f"{savepoint}/{CLAIMS}/{number}", json.dumps({"owner": owner, "over": True}).encode())


def open_claims(store: Store, savepoint: str) -> list[int]:
    """The tries that have not said that they are over."""
    numbers = _numbers(store, savepoint)
    return [number for number in numbers if not _read(store, savepoint, number).get("over")]


def check_name(savepoint: str) -> None:
    name = savepoint.rpartition("/")[2]
    if not name or name in (".", "..") or savepoint.startswith("/"):
        raise SavepointError(f"'{savepoint}' is no place for a savepoint: name a directory below the store")


def newest_claim(store: Store, savepoint: str) -> int | None:
    return max(_numbers(store, savepoint), default=None)


def owner_of(store: Store, savepoint: str, number: int) -> str | None:
    return _read(store, savepoint, number).get("owner")


def _numbers(store: Store, savepoint: str) -> list[int]:
    return [int(name) for name in store.children(f"{savepoint}/{CLAIMS}") if name.isdecimal()]


def _read(store: Store, savepoint: str, number: int) -> dict[str, Any]:
    try:
        body = json.loads(store.get(f"{savepoint}/{CLAIMS}/{number}"))
    except (NotFoundError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def _is_finished(store: Store, savepoint: str) -> bool:
    try:
        content = store.get(f"{savepoint}/{MANIFEST}")
    except NotFoundError:
        return False
    if decode(f"{store.url}/{savepoint}/{MANIFEST}", content) is None:
        raise SavepointError(f"{store.url}/{savepoint} is being removed: choose another name")
    return True
