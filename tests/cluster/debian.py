"""What must come from the distribution: the container runtime and the network tools."""

import os
import shutil
import subprocess
from pathlib import Path

from .console import MissingError, say

# What is looked for (a program, or a path) -> the Debian package that brings it.
FOR_API_SERVER = {"openssl": "openssl", "setpriv": "util-linux"}
FOR_CLUSTER = {
    **FOR_API_SERVER,
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
FOR_IMAGES = {"buildah": "buildah", "debootstrap": "debootstrap"}

# An ordinary user's PATH leaves out where Debian keeps ip, runc and iptables.
SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def missing_packages(needed: dict[str, str]) -> list[str]:
    return sorted({package for what, package in needed.items() if not _present(what)})


def need(needed: dict[str, str]) -> None:
    if packages := missing_packages(needed):
        raise MissingError(
            f"Missing Debian packages: {' '.join(packages)}.\n"
            f"Install them: apt-get install --no-install-recommends {' '.join(packages)}\n"
            "or, as root: make setup-cluster"
        )


def need_root() -> None:
    if os.geteuid() != 0:
        raise MissingError(
            "The native cluster makes network namespaces and cgroups: start and end it as root.\n"
            "Without root: HEADRACE_CLUSTER=kind (needs Docker) or HEADRACE_CLUSTER=current."
        )


def install(needed: dict[str, str]) -> None:
    """Installs what is missing, and only when asked to: a test never changes the machine by itself."""
    packages = missing_packages(needed)
    if not packages:
        say("every Debian package is there")
        return
    need_root()
    if shutil.which("apt-get") is None:
        raise MissingError(f"No apt-get here. Install by your own means: {' '.join(packages)}")
    say(f"installing {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise MissingError(f"`apt-get {command[0]}` failed:\n{done.stderr.strip()[-2000:]}")


def _present(what: str) -> bool:
    return Path(what).exists() if what.startswith("/") else shutil.which(what, path=SEARCH_PATH) is not None
