"""What a cluster could leave on the machine, looked for one kind after the other: `down` shows the result."""

import contextlib
import ipaddress
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from . import cgroups, debian, layout, namespaces

NETWORKS = tuple(ipaddress.ip_network(network) for network in ("198.18.0.0/24", layout.PODS, layout.SERVICES))
# The image builder's, see images/build.py: it lies outside the cache because it must not outlive a boot.
IMAGES_RUN_DIRECTORY = Path("/run/headrace-images")
NAMESPACES = ("mnt", "net", "pid", "uts")


def left_over() -> dict[str, list[str]]:
    """Kind -> what is there of it. All are empty after `down`, or it did not do its work."""
    processes = namespaces.processes_of_nodes()
    return {
        "processes": sorted(_name(process) for process in processes),
        "namespaces": sorted(_namespaces(processes)),
        "mounts": mounts_below(layout.state_dir(), Path("/proc/self/mountinfo").read_text()),
        "interfaces": [path.name for path in Path("/sys/class/net").glob(layout.MACHINE_LINK)],
        "routes": ours(_output("ip", "route", "show", "table", "all").splitlines()),
        "iptables rules": ours(rules(_output("iptables-save"))),
        "cgroups": [str(path) for path in cgroups.left()],
        "directories": [
            *(str(path) for path in layout.state_dir().glob("node*/scratch")),
            *(str(path) for path in [IMAGES_RUN_DIRECTORY] if path.exists() and not _in_use(path)),
        ],
    }


def remove_images_run_directory() -> None:
    """Not under the hands of somebody who builds an image just now."""
    mounts = mounts_below(IMAGES_RUN_DIRECTORY, Path("/proc/self/mountinfo").read_text())
    if not mounts and not _in_use(IMAGES_RUN_DIRECTORY):
        shutil.rmtree(IMAGES_RUN_DIRECTORY, ignore_errors=True)


def listing(left: dict[str, list[str]]) -> list[str]:
    width = max(len(kind) for kind in left)
    return [f"{kind:<{width}}  {', '.join(found) or 'none'}" for kind, found in left.items()]


def mounts_below(directory: Path, mountinfo: str) -> list[str]:
    # The kernel writes a space in a path as \040.
    points = [line.split()[4].replace("\\040", " ") for line in mountinfo.splitlines()]
    return [point for point in points if Path(point).is_relative_to(directory)]


def rules(iptables_save: str) -> list[str]:
    """Without comments, which carry the date, and without counters, which move by themselves."""
    lines = [line for line in iptables_save.splitlines() if not line.startswith("#")]
    return [re.sub(r"\s*\[\d+:\d+\]\s*", "", line) for line in lines]


def ours(lines: Iterable[str]) -> list[str]:
    """Those that speak of our interface or of an address in our networks."""

    def is_ours(line: str) -> bool:
        return layout.MACHINE_LINK in line or any(map(_is_in_our_networks, _addresses(line)))

    return [line.strip() for line in lines if is_ours(line)]


def _addresses(line: str) -> list[str]:
    return re.findall(r"\d+\.\d+\.\d+\.\d+", line)


def _is_in_our_networks(word: str) -> bool:
    try:
        return any(ipaddress.ip_address(word) in network for network in NETWORKS)
    except ValueError:
        return False


def _in_use(directory: Path) -> bool:
    """Whether a program was started with it, as buildah is."""
    return any(str(directory) in arguments for _, arguments in namespaces.every_process())


def _name(process: Path) -> str:
    with contextlib.suppress(OSError):
        return f"{process.name} ({(process / 'comm').read_text().strip()})"
    return process.name


def _namespaces(processes: list[Path]) -> set[str]:
    """Those of the processes given that are not this machine's."""
    found: set[str] = set()
    for process in processes:
        for kind in NAMESPACES:
            with contextlib.suppress(OSError):
                namespace = (process / "ns" / kind).readlink()
                if namespace != Path(f"/proc/self/ns/{kind}").readlink():
                    found.add(str(namespace))
    return found


def _output(program: str, *arguments: str) -> str:
    """Empty where the program is missing: nobody made a rule without it."""
    found = shutil.which(program, path=debian.SEARCH_PATH)
    if found is None:
        return ""
    return subprocess.run([found, *arguments], capture_output=True, text=True, check=False).stdout
