"""Who may work on a savepoint. Each try has a claim of its own, and with it a directory of its own."""

from __future__ import annotations

import json

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


def check_name(savepoint: str) -> None:
    name = savepoint.rpartition("/")[2]
    if not name or name in (".", "..") or savepoint.startswith("/"):
        raise SavepointError(f"'{savepoint}' is no place for a savepoint: name a directory below the store")


def newest_claim(store: Store, savepoint: str) -> int | None:
    names = store.children(f"{savepoint}/{CLAIMS}")
    return max((int(name) for name in names if name.isdecimal()), default=None)


def owner_of(store: Store, savepoint: str, number: int) -> str | None:
    try:
        return json.loads(store.get(f"{savepoint}/{CLAIMS}/{number}")).get("owner")
    except (NotFoundError, ValueError, AttributeError):
        return None


def _is_finished(store: Store, savepoint: str) -> bool:
    try:
        content = store.get(f"{savepoint}/{MANIFEST}")
    except NotFoundError:
        return False
    if decode(f"{store.url}/{savepoint}/{MANIFEST}", content) is None:
        raise SavepointError(f"{store.url}/{savepoint} is being removed: choose another name")
    return True
