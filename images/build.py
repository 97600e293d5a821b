"""Builds Headrace's images from the Dockerfile, with Docker or, where none runs, with buildah.

    python images/build.py                # both images; prints their names
    python images/build.py spark --archive build/spark.tar

An image's tag is a digest of all that goes into it, so an image that exists is never built again, and a
cluster that has a tag has the right content. What is downloaded is pinned by hash (images/*.txt for Python,
jobs/headrace_jobs/jvm/locks for jars); only Debian's packages come from the distribution as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build/images"
BASE = "docker.io/library/debian:bookworm-slim"
# A name that no registry has, unless told where the images are to be pushed.
REPOSITORY = os.environ.get("HEADRACE_IMAGE_REPOSITORY", "headrace.local")
DEBIAN = "bookworm"
# What buildah knows of its mounts, which must not outlive a boot. `make cluster-down` removes it.
RUN_DIRECTORY = "/run/headrace-images"
PYTHON = "3.11"  # Debian bookworm's

# Installed by the packages, needed by nobody at run time.
USELESS = (
    "bin",
    "pyspark/examples",
    "pyspark/data",
    "pyspark/tests",
    "pandas/tests",
    "pyarrow/tests",
    "pyarrow/include",
    "numpy/**/tests",
)


# boto3 brings a description of every service of AWS; the store speaks to one, and logs in by the others.
AWS_SERVICES_KEPT = frozenset({"s3", "sts", "sso", "sso-oidc", "signin"})


class BuildError(Exception):
    """The message says what is missing, or the last lines of what went wrong."""


@dataclass(frozen=True)
class Image:
    target: str
    # Folders of Python packages to stage, each from images/<name>.txt.
    requirements: tuple[str, ...]
    # Connectors whose jars are part of its Spark.
    connectors: tuple[str, ...]
    # Whatever changes one of these makes another image.
    sources: tuple[str, ...]

    @property
    def reference(self) -> str:
        return f"{REPOSITORY}/{self.target}:{_digest(self._inputs())}"

    def _inputs(self) -> Iterable[Path]:
        yield ROOT / "Dockerfile"
        for name in self.requirements:
            yield ROOT / "images" / f"{name}.txt"
        for source in self.sources:
            yield from (path for path in sorted(ROOT.glob(source)) if path.is_file())


SPARK = Image(
    target="spark",
    requirements=("spark",),
    connectors=("s3a", "kafka"),
    sources=("images/entrypoint.sh", "images/decom.sh", "jobs/headrace_jobs/jvm/locks/*.lock"),
)
OPERATOR = Image(
    target="operator",
    requirements=("operator", "carried"),
    connectors=(),
    # The jar is made from jobs/jvm: its sources stand for it.
    sources=(
        "images/carry.sh",
        "operator/headrace/**/*.py",
        "jobs/headrace_jobs/**/*.py",
        "jobs/jvm/**/*.java",
        "jobs/headrace_jobs/jvm/locks/s3a-*.lock",
    ),
)
IMAGES = {image.target: image for image in (OPERATOR, SPARK)}


def build(image: Image, reference: str | None = None) -> str:
    """Makes the image if its tag does not exist yet, and returns its name.

    A caller that has asked for the name before passes it, in case somebody edits a source meanwhile.
    """
    builder, reference = find_builder(), reference or image.reference
    if not builder.has(reference):
        began = time.monotonic()
        say(f"building {reference} with {builder.name}")
        stage(image)
        builder.ensure_base()
        builder.build(ROOT, "--target", image.target, reference=reference)
        builder.forget_older(reference)
        say(f"built {reference} in {time.monotonic() - began:.0f} s")
    return reference


def archive(image: Image, target: Path, reference: str | None = None) -> Path:
    """The image as one docker-archive file, as `ctr images import` and `kind load` take it."""
    reference = build(image, reference)
    target.parent.mkdir(parents=True, exist_ok=True)
    find_builder().save(reference, target)
    return target


def stage(image: Image) -> None:
    """Puts what the Dockerfile copies under build/images."""
    for name in image.requirements:
        _stage_packages(name)
    if image.connectors:
        _stage_connectors(image.connectors)
    if image is OPERATOR:
        _run([sys.executable, "-m", "headrace_jobs.jvm", "--if-stale"])
        _stage_carried_connectors()
        for package in ("operator/headrace", "jobs/headrace_jobs"):
            _stage_code(ROOT / package)


def _stage_packages(name: str) -> None:
    lock, target = ROOT / "images" / f"{name}.txt", STAGE / name
    stamp, made_from = STAGE / f".{name}.made-from", _digest([lock])
    if stamp.exists() and stamp.read_text() == made_from:
        return
    shutil.rmtree(target, ignore_errors=True)
    say(f"installing images/{name}.txt")
    flags = [
        "--quiet",
        "--system-certs",
        "--require-hashes",
        "--python-version",
        PYTHON,
        "--link-mode",
        "copy",
    ]
    _run([find_uv(), "pip", "install", *flags, "--target", str(target), "-r", str(lock)])
    useless = [path for pattern in USELESS for path in target.glob(pattern)]
    useless += [path for path in target.glob("botocore/data/*/") if path.name not in AWS_SERVICES_KEPT]
    for path in useless:
        shutil.rmtree(path)
    stamp.write_text(made_from)


def _stage_code(package: Path) -> None:
    """Only what belongs to the package, readable by everybody, whatever else lies in the checkout."""
    target = STAGE / "code" / package.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(package, target, ignore=_not_code)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def _not_code(directory: str, names: list[str]) -> set[str]:
    # Beside the jar lie its lock and, while somebody builds it, scratch directories.
    jars_only = Path(directory).name == "jars"
    return {name for name in names if name == "__pycache__" or (jars_only and not name.endswith(".jar"))}


def _stage_connectors(names: tuple[str, ...]) -> None:
    from headrace_jobs.jvm.jars import connector_jars  # noqa: PLC0415 (only this step needs the package)

    target = STAGE / "connectors"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in names:
        for jar in connector_jars(name):
            shutil.copyfile(jar, target / jar.name)


def _stage_carried_connectors() -> None:
    """For jobs' images that have no S3 connector of their own: one for each line of Hadoop."""
    from headrace_jobs.jvm.jars import connector_locks, locked_jars  # noqa: PLC0415 (only this step needs it)

    target = STAGE / "carried-connectors"
    shutil.rmtree(target, ignore_errors=True)
    for lock in connector_locks("s3a"):
        (target / lock.stem).mkdir(parents=True)
        for jar in locked_jars(lock):
            shutil.copyfile(jar, target / lock.stem / jar.name)


class Docker:
    name = "docker"

    def has(self, reference: str) -> bool:
        return _succeeds(["docker", "image", "inspect", reference])

    def ensure_base(self) -> None:
        """Docker fetches it."""

    def build(self, context: Path, *flags: str, reference: str) -> None:
        _run(["docker", "build", *flags, "--tag", reference, str(context)])

    def forget_older(self, reference: str) -> None:
        """Docker has its own ways to clean up."""

    def save(self, reference: str, target: Path) -> None:
        _run(["docker", "save", "--output", str(target), reference])


class Buildah:
    """As root, with its own storage in the cache, so that the machine's images stay as they are."""

    name = "buildah"

    def has(self, reference: str) -> bool:
        return _succeeds(self._buildah("inspect", "--type", "image", reference))

    def ensure_base(self) -> None:
        """No registry is asked for the base: debootstrap makes the same from Debian's packages."""
        if self.has(BASE):
            return
        with tempfile.TemporaryDirectory(dir=self._storage().parent) as scratch:
            root = Path(scratch) / "root"
            say(f"making {BASE} with debootstrap")
            _run(["debootstrap", "--variant=minbase", DEBIAN, str(root)])
            _slim(root)
            container = _run(self._buildah("from", "scratch")).strip()
            _run(self._buildah("copy", "--quiet", container, f"{root}/", "/"))
            _run(self._buildah("config", "--cmd", "bash", container))
            _run(self._buildah("commit", "--quiet", "--rm", container, BASE))

    def build(self, context: Path, *flags: str, reference: str) -> None:
        # chroot: needs no more rights than a build machine's root has. The network is for apt only.
        how = ["--isolation", "chroot", "--network", "host", "--format", "docker", "--layers", "--pull=false"]
        _run(self._buildah("bud", *how, *flags, "--tag", reference, str(context)))

    def forget_older(self, reference: str) -> None:
        """Tags are digests, so every change of a source adds one: only the newest is kept."""
        repository = reference.rpartition(":")[0]
        every = _run(self._buildah("images", "--format", "{{.Name}}:{{.Tag}}")).split()
        older = [name for name in every if name.startswith(f"{repository}:") and name != reference]
        if older:
            _run(self._buildah("rmi", *older))

    def save(self, reference: str, target: Path) -> None:
        target.unlink(missing_ok=True)
        _run(self._buildah("push", "--quiet", reference, f"docker-archive:{target}:{reference}"))

    def _buildah(self, *arguments: str) -> list[str]:
        storage = self._storage()
        return ["buildah", "--root", str(storage), "--runroot", RUN_DIRECTORY, *arguments]

    def _storage(self) -> Path:
        storage = _cache_dir() / "images" / "storage"
        storage.mkdir(parents=True, exist_ok=True)
        return storage


def find_builder() -> Docker | Buildah:
    if shutil.which("docker") and _succeeds(["docker", "info"]):
        return Docker()
    if shutil.which("buildah") is None or shutil.which("debootstrap", path=_SEARCH_PATH) is None:
        raise BuildError("Images need Docker, or: apt-get install buildah debootstrap")
    if os.geteuid() != 0:
        raise BuildError("buildah and debootstrap must be run as root here; or start Docker.")
    return Buildah()


def _slim(root: Path) -> None:
    """As Debian's own slim images: no manuals, no translations, and none installed later either."""
    useless = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian")
    for directory in (*useless, "var/cache/apt/archives", "var/lib/apt/lists", "var/log"):
        shutil.rmtree(root / directory, ignore_errors=True)
        (root / directory).mkdir(parents=True)
    (root / "var/cache/apt/archives/partial").mkdir()
    excludes = "".join(f"path-exclude /{directory}/*\n" for directory in useless)
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(excludes)


_SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _cache_dir() -> Path:
    """The same as in scripts/find-uv.sh, which puts uv there."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def find_uv() -> str:
    cached = sorted(_cache_dir().glob("uv-*/bin/uv"))
    found = shutil.which("uv") or (str(cached[-1]) if cached else None)
    if found is None:
        raise BuildError("uv is missing: run `make setup` first.")
    return found


def _run(command: list[str]) -> str:
    environment = {**os.environ, "PATH": _SEARCH_PATH}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()[-25:]
        raise BuildError(f"`{' '.join(command[:4])} …` failed:\n" + "\n".join(said))
    return done.stdout


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _digest(paths: Iterable[Path]) -> str:
    # What this script does to the files counts too; how it is written does not.
    digest = hashlib.sha256(repr((BASE, PYTHON, USELESS, sorted(AWS_SERVICES_KEPT))).encode())
    for path in paths:
        digest.update(f"{path.relative_to(ROOT)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def say(text: str) -> None:
    sys.stderr.write(f"[images] {text}\n")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("image", nargs="?", choices=[*IMAGES], help="only this one")
    parser.add_argument("--archive", type=Path, help="also write the image to this file")
    arguments = parser.parse_args()
    if arguments.archive and not arguments.image:
        parser.error("--archive needs the name of one image")
    try:
        for name in [arguments.image] if arguments.image else IMAGES:
            sys.stdout.write(build(IMAGES[name]) + "\n")
            if arguments.archive:
                archive(IMAGES[name], arguments.archive)
    except BuildError as problem:
        say(str(problem))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
