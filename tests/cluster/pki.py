"""The cluster's own certificate authority, and one certificate for each of its parts."""

import base64
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

DAYS = "3650"


@dataclass(frozen=True)
class Identity:
    """Who a certificate speaks for. Kubernetes reads the user from CN and the groups from O."""

    file: str
    user: str
    groups: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return "".join(f"/O={group}" for group in self.groups) + f"/CN={self.user}"


ADMIN = Identity("admin", "headrace-admin", groups=("system:masters",))


@dataclass(frozen=True)
class Pki:
    directory: Path

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def service_account_key(self) -> Path:
        return self.directory / "service-accounts.key"

    def certificate(self, identity: Identity) -> Path:
        return self.directory / f"{identity.file}.crt"

    def key(self, identity: Identity) -> Path:
        return self.directory / f"{identity.file}.key"


def ensure(directory: Path, identities: list[Identity]) -> Pki:
    """Makes what is not there yet; an authority that exists is kept, so old kubeconfigs go on working."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    pki = Pki(directory)
    if not pki.ca.exists():
        _openssl(
            ["req", "-x509", *_NEW_KEY, "-days", DAYS, "-subj", "/CN=headrace-cluster", "-keyout", "ca.key"],
            directory,
            output="ca.crt",
        )
    if not pki.service_account_key.exists():
        _openssl(
            # Not `genpkey`: from its format Kubernetes cannot take the public half.
            ["ecparam", "-genkey", "-name", "prime256v1", "-noout"],
            directory,
            output=pki.service_account_key.name,
        )
    for identity in identities:
        if not pki.certificate(identity).exists():
            _sign(directory, identity)
    return pki


def write_kubeconfig(
    path: Path, *, server: str, keys: Pki, identity: Identity, name: str = "headrace"
) -> Path:
    """JSON is YAML too, so nothing but the standard library is needed."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": _base64(keys.ca)}}
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _base64(keys.certificate(identity)),
                    "client-key-data": _base64(keys.key(identity)),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2) + "\n")
    return path


_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def _sign(directory: Path, identity: Identity) -> None:
    request = f"{identity.file}.csr"
    _openssl(
        ["req", *_NEW_KEY, "-keyout", f"{identity.file}.key", "-subj", identity.subject],
        directory,
        output=request,
    )
    extensions = directory / f"{identity.file}.ext"
    names = [f"subjectAltName={','.join(identity.names)}"] if identity.names else []
    extensions.write_text("\n".join(["extendedKeyUsage=clientAuth,serverAuth", *names]))
    authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"]
    _openssl(
        ["x509", "-req", "-in", request, *authority, "-days", DAYS, "-extfile", extensions.name],
        directory,
        output=f"{identity.file}.crt",
    )
    (directory / request).unlink()
    extensions.unlink()


def _openssl(arguments: list[str], directory: Path, *, output: str) -> None:
    subprocess.run(
        ["openssl", *arguments, "-out", output], cwd=directory, check=True, capture_output=True, text=True
    )


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
