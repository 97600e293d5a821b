"""Authorities for Java, from PEM: what everybody trusts, and those of the manifest beside it.

Java reads no PEM, and `keytool` is not in every image. Its own format for certificates is simple enough.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import struct
from collections.abc import Iterable
from pathlib import Path

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_MAGIC, _VERSION, _CERTIFICATE = 0xFEEDFEED, 2, 2
_PASSWORD = "changeit"  # noqa: S105  (Java wants one; the certificates in it are public)


class NoCertificates(Exception):
    """There is none in what should hold them."""


def write_trust_store(authorities: Path, target: Path) -> int:
    """How many of the authorities in the PEM file are now trusted beside the public ones."""
    own = certificates(authorities)
    everybody = certificates(_public_authorities())
    target.write_bytes(trust_store([*own, *(one for one in everybody if one not in own)]))
    target.chmod(0o644)
    return len(own)


def certificates(bundle: Path) -> list[bytes]:
    """In DER. Raises NoCertificates."""
    try:
        found = [ssl.PEM_cert_to_DER_cert(block) for block in _PEM.findall(bundle.read_text())]
    except (UnicodeDecodeError, ValueError):
        found = []
    if not found:
        raise NoCertificates(str(bundle))
    return found


def trust_store(authorities: Iterable[bytes]) -> bytes:
    """A Java KeyStore (JKS) of trusted certificates."""
    entries = [
        struct.pack(">i", _CERTIFICATE)
        + _text(f"authority-{number}")
        + struct.pack(">q", 0)
        + _text("X.509")
        + struct.pack(">i", len(certificate))
        + certificate
        for number, certificate in enumerate(authorities)
    ]
    content = struct.pack(">Iii", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    # Sun's own idea of a seal; it guards nothing here, but Java looks at it.
    seal = hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content)  # noqa: S324
    return content + seal.digest()


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


def _public_authorities() -> Path:
    """Mozilla's list, as botocore brings it: an image need not have one."""
    import botocore  # noqa: PLC0415 - only who needs it pays for it

    return Path(botocore.__file__).parent / "cacert.pem"
