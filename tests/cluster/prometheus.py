"""Prometheus and its promtool, from Debian's package but not installed: installing would start a service.

The package is unpacked into the cache, keyed by its version. It needs nothing but libc.
"""

import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .console import MissingError, say
from .controlplane import LOOPBACK, free_ports
from .paths import cache_dir
from .processes import start, wait_ready, wait_until

_PACKAGE = "prometheus"


@dataclass(frozen=True)
class Programs:
    prometheus: Path
    promtool: Path


def ensure(*, refresh: bool = False) -> Programs:
    """What is in the cache costs nothing; the rest is one download of 19 MB. `refresh` asks the mirror for
    its list of packages first, where there is none: only root may."""
    if shutil.which("apt-get") is None:
        return _from_path()
    if _candidate() is None and refresh:
        _run(["apt-get", "update", "-qq"])
    version = _candidate()
    if version is None:
        raise MissingError(
            f"apt-get knows no package {_PACKAGE}: its lists are empty.\n"
            "Fetch them: apt-get update, or, as root: make setup-cluster"
        )
    root = cache_dir() / "bin" / f"{_PACKAGE}-{re.sub(r'[^A-Za-z0-9.+-]', '_', version)}"
    if not root.exists():
        _unpack(root)
    return Programs(root / "usr/bin/prometheus", root / "usr/bin/promtool")


def _from_path() -> Programs:
    found = {name: shutil.which(name) for name in ("prometheus", "promtool")}
    if missing := [name for name, path in found.items() if path is None]:
        raise MissingError(f"No apt-get here, and not on the PATH: {' '.join(missing)}. Install Prometheus.")
    return Programs(Path(str(found["prometheus"])), Path(str(found["promtool"])))


def _candidate() -> str | None:
    shown = _run(["apt-cache", "policy", _PACKAGE])
    found = re.search(r"^ *Candidate: (\S+)$", shown, re.MULTILINE)
    return found[1] if found and found[1] != "(none)" else None


def _unpack(root: Path) -> None:
    say(f"fetching {_PACKAGE} (kept in {root})")
    root.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that it appears there whole or not at all.
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        _run(["apt-get", "download", "-qq", _PACKAGE], directory=Path(scratch))
        (package,) = Path(scratch).glob("*.deb")
        _run(["dpkg-deb", "-x", str(package), str(Path(scratch) / "root")])
        try:
            (Path(scratch) / "root").rename(root)
        except OSError:
            if not root.exists():  # another checkout was faster
                raise


def _run(command: list[str], *, directory: Path | None = None) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


@dataclass(frozen=True)
class Prometheus:
    """One that runs on loopback."""

    url: str

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The labels and the value of each series of an instant vector."""
        answer = self._get("/api/v1/query", query=expression)
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    def alerts(self) -> list[dict[str, Any]]:
        return self._get("/api/v1/alerts")["data"]["alerts"]

    def wait_for(self, expression: str, *, seconds: float = 30) -> list[tuple[dict[str, str], float]]:
        """What it finds as soon as it finds something."""
        assert wait_until(lambda: bool(self.query(expression)), seconds=seconds), f"never true: {expression}"
        return self.query(expression)

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        address = f"{self.url}{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=10) as response:
                return json.load(response)
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{path} {parameters}: {refused.read().decode()}") from refused


@contextmanager
def running_prometheus(
    directory: Path, scrapes: list[Mapping[str, Any]], *, rules: Path | None = None
) -> Iterator[Prometheus]:
    """Scrapes what it is told, every half second, for as long as the caller lives. Needs no root."""
    programs = ensure()
    (port,) = free_ports(1)
    config = directory / "prometheus.yml"
    # JSON is YAML.
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
                "scrape_configs": [dict(scrape) for scrape in scrapes],
                "rule_files": [str(rules)] if rules else [],
            }
        )
    )
    url, log = f"http://{LOOPBACK}:{port}", directory / "prometheus.log"
    command = [
        str(programs.prometheus),
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
    ]
    # Also when the caller is killed, nothing stays behind.
    process = start("prometheus", ["setpriv", "--pdeathsig", "KILL", *command], log=log)
    try:
        wait_ready(process, lambda: _ready(url), log=log, seconds=60)
        yield Prometheus(url)
    finally:
        process.end()


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as response:
            return response.status == 200
    except OSError:
        return False
