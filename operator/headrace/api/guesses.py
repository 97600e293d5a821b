"""What a person most likely meant: the nearest name, number or truth value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip

_TRUTH_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "y", "1", "enabled"), True),
    **dict.fromkeys(("false", "no", "off", "n", "0", "disabled"), False),
}

# What other tools call the same thing.
_SYNONYMS = {
    "replicas": "count",
    "instances": "count",
    "executor": "executors",
    "cpu": "cores",
    "cpus": "cores",
    "ram": "memory",
    "conf": "sparkConf",
    "config": "sparkConf",
    "sparkconfig": "sparkConf",
    "mainapplicationfile": "file",
    "arguments": "args",
    "serviceaccountname": "serviceAccount",
    "savepoint": "savepoints",
    "suspended": "suspend",
    "paused": "suspend",
    "maxreplicas": "max",
    "minreplicas": "min",
    "cron": "schedule",
    "bootstrap": "bootstrapServers",
    "brokers": "bootstrapServers",
}


def nearest_name(wrong: str, names: Iterable[str]) -> str | None:
    """The name that was meant: same letters, another tool's word for it, or a slip of the fingers."""
    known = list(names)
    by_letters = {_letters(name): name for name in known}
    if found := by_letters.get(_letters(wrong)):
        return found
    if (synonym := _SYNONYMS.get(_letters(wrong))) in known:
        return synonym
    close = difflib.get_close_matches(_letters(wrong), list(by_letters), n=1, cutoff=0.7)
    return by_letters[close[0]] if close else None


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def whole_number(value: object) -> int | None:
    """`"2"`, `2.0`, `"two"`, `"4 cores"`."""
    match value:
        case bool():
            return None
        case int():
            return value
        case float() if abs(value) < 10**9:  # neither infinite nor NaN, which is below nothing
            return round(value)
        case str():
            if (word := value.strip().lower()) in _NUMBER_WORDS:
                return _NUMBER_WORDS[word]
            digits = re.match(r"-?[0-9]{1,9}", word)
            return int(digits[0]) if digits else None
        case _:
            return None


def truth(value: object) -> bool | None:
    return _TRUTH_WORDS.get(str(value).strip().lower()) if isinstance(value, str | int) else None
