"""Kubernetes, etcd, CoreDNS, S3 servers and Helm, compiled from pinned Go modules into the cache.

Each folder of `gomodules/` pins one set: go.mod names the versions, go.sum what they must hash to. A set is
compiled once per (pins, Go version, flags); the key is part of the path, so a changed pin never meets an old
binary, and two checkouts share what is equal.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .console import MissingError, Progress, say
from .paths import SOURCE, cache_dir

GIGABYTE = 1024**3
FREE_GIGABYTES_TO_COMPILE = 6


@dataclass(frozen=True)
class ModuleSet:
    """One folder of gomodules/ and the programs it can make. Its version is that of its main module."""

    folder: str
    module: str | None
    packages: dict[str, str]
    stamps: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        return SOURCE / "gomodules" / self.folder

    @property
    def version(self) -> str:
        if self.module is None:
            return "v1.0.0"
        found = re.search(
            rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", self._text("go.mod"), re.MULTILINE
        )
        if found is None:
            raise LookupError(f"{self.source}/go.mod does not require {self.module}")
        return found[1]

    def linker_flags(self) -> str:
        major, minor, _ = self.version.removeprefix("v").split(".", 2)
        stamps = [stamp.format(version=self.version, major=major, minor=minor) for stamp in self.stamps]
        return " ".join(["-s -w", *(f"-X {stamp}" for stamp in stamps)])

    def directory(self) -> Path:
        pins = hashlib.sha256(f"{go_version()}\n{self.linker_flags()}\n".encode())
        for file in sorted(path.name for path in self.source.iterdir()):
            pins.update(f"{file}\n{self._text(file)}".encode())
        return cache_dir() / "bin" / f"{self.folder}-{self.version}-{pins.hexdigest()[:12]}"

    def _text(self, file: str) -> str:
        return (self.source / file).read_text()


KUBERNETES = ModuleSet(
    folder="kubernetes",
    module="k8s.io/kubernetes",
    packages={
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in (
            "kube-apiserver",
            "kubectl",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
        )
    },
    # Without these the server calls itself v0.0.0, and clients that look at the version misbehave.
    stamps=(
        "k8s.io/component-base/version.gitVersion={version}",
        "k8s.io/component-base/version.gitMajor={major}",
        "k8s.io/component-base/version.gitMinor={minor}",
    ),
)
ETCD = ModuleSet(
    folder="etcd", module="go.etcd.io/etcd/server/v3", packages={"etcd": "go.etcd.io/etcd/server/v3"}
)
COREDNS = ModuleSet(folder="coredns", module="github.com/coredns/coredns", packages={"coredns": "."})

PAUSE = ModuleSet(folder="pause", module=None, packages={"pause": "."})
VERSITYGW = ModuleSet(
    folder="versitygw",
    module="github.com/versity/versitygw",
    packages={"versitygw": "github.com/versity/versitygw/cmd/versitygw"},
)
MINIO = ModuleSet(
    folder="minio", module="github.com/minio/minio", packages={"minio": "github.com/minio/minio"}
)
HELM = ModuleSet(
    folder="helm",
    module="helm.sh/helm/v3",
    packages={"helm": "helm.sh/helm/v3/cmd/helm"},
    stamps=("helm.sh/helm/v3/internal/version.version={version}",),
)

MODULE_SETS = (ETCD, KUBERNETES, COREDNS, PAUSE, VERSITYGW, MINIO, HELM)

# In the order in which they are wanted: the API server's tests can start while the rest is compiled.
API_SERVER_PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
CLUSTER_PROGRAMS = (
    *API_SERVER_PROGRAMS,
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "coredns",
    "pause",
)


def program(name: str) -> Path:
    """The path of a program that `ensure` has made."""
    return _set_of(name).directory() / name


def ensure(names: tuple[str, ...]) -> dict[str, Path]:
    """Compiles what is not in the cache yet; the rest costs nothing."""
    for module_set in MODULE_SETS:
        wanted = [name for name in module_set.packages if name in names]
        if all(program(name).exists() for name in wanted):
            continue
        with _only_one_at_a_time(module_set):
            missing = [name for name in wanted if not program(name).exists()]
            if missing:
                _compile(module_set, missing)
    return {name: program(name) for name in names}


def missing(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not program(name).exists()]


def _compile(module_set: ModuleSet, names: list[str]) -> None:
    _need_disk_space()
    target = module_set.directory()
    target.mkdir(parents=True, exist_ok=True)
    packages = [module_set.packages[name] for name in names]
    began = time.monotonic()
    say(f"compiling {', '.join(names)} {module_set.version} (kept in {target})")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compiling-") as fresh:
        # A trailing slash lets Go name the files itself, as it must when there are several.
        flags = ["-v", "-trimpath", "-ldflags", module_set.linker_flags(), "-o", f"{fresh}/"]
        _go_with_progress(module_set, ["build", *flags, *packages], packages, label=module_set.folder)
        for name in names:
            (Path(fresh) / _name_that_go_gives(module_set, name)).rename(target / name)
    say(f"compiled {', '.join(names)} in {time.monotonic() - began:.0f} s")


def _go_with_progress(module_set: ModuleSet, command: list[str], packages: list[str], *, label: str) -> None:
    listing = _go(module_set, "list", "-deps", *packages)
    progress = Progress(label, total=len(listing.splitlines()))
    process = subprocess.Popen(
        ["nice", "-n", "19", go(), *command],
        cwd=module_set.source,
        env=_go_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line.rstrip())
        progress.step()
    progress.end()
    if process.wait() != 0:
        raise MissingError(f"Go could not compile {label}:\n" + "\n".join(said[-20:]))


def _go(module_set: ModuleSet, *arguments: str) -> str:
    done = subprocess.run(
        [go(), *arguments],
        cwd=module_set.source,
        env=_go_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MissingError(f"`go {arguments[0]}` failed in {module_set.source}:\n{done.stderr.strip()}")
    return done.stdout


def _go_environment() -> dict[str, str]:
    # readonly: what go.mod and go.sum pin is what is built, or nothing is.
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}


@cache
def go() -> str:
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if found is None:
        raise MissingError(
            "Go 1.26 or newer is needed to compile what the tests run: install it and put `go` on the PATH."
        )
    return found


@cache
def go_version() -> str:
    return subprocess.run(
        [go(), "env", "GOVERSION"], capture_output=True, text=True, check=True
    ).stdout.strip()


def _need_disk_space() -> None:
    cache_dir().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache_dir()).free / GIGABYTE
    if free < FREE_GIGABYTES_TO_COMPILE:
        raise MissingError(
            f"{cache_dir()} has {free:.1f} GB free, compiling needs {FREE_GIGABYTES_TO_COMPILE} GB. "
            "Free some, or point XDG_CACHE_HOME at a larger disk."
        )


@contextmanager
def _only_one_at_a_time(module_set: ModuleSet) -> Iterator[None]:
    lock = cache_dir() / f".{module_set.folder}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _set_of(name: str) -> ModuleSet:
    return next(module_set for module_set in MODULE_SETS if name in module_set.packages)


def _name_that_go_gives(module_set: ModuleSet, name: str) -> str:
    """The last part of the package's path; a major version does not count as one."""
    package = module_set.packages[name]
    if package == ".":
        return module_set.folder
    return next(part for part in reversed(package.split("/")) if not re.fullmatch(r"v\d+", part))
