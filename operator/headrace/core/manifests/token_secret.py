"""The agent's token. The operator makes this Secret and never reads it: it can compute the token again."""

from __future__ import annotations

from headrace.core.manifests.attempt import DriverAttempt, Manifest
from headrace.core.manifests.places import TOKEN_FILE


def token_secret(attempt: DriverAttempt, *, token: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": attempt.metadata("driver"),
        "type": "Opaque",
        "immutable": True,
        "stringData": {TOKEN_FILE: token},
    }
