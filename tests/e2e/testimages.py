"""Images that only tests need: built like the product's, under a tag that is a digest of what goes in."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from images import build

from headrace_jobs.jvm.jars import locked_jars
from tests.cluster import binaries
from tests.cluster.console import MissingError
from tests.cluster.provider import ImageToLoad

HERE = Path(__file__).parent
KAFKA_LOCK = HERE / "locks/kafka-broker-4.3.1.lock"
FOREIGN_LOCK = HERE / "locks/foreign-spark-4.3.0.txt"
S3_SERVERS = ("versitygw", "minio")


@dataclass(frozen=True)
class OwnImage:
    name: str
    pins: Callable[[], list[str]]
    """What makes another image when it changes, beside the Dockerfile."""

    stage: Callable[[Path], None]
    flags: Callable[[], list[str]]

    @property
    def dockerfile(self) -> Path:
        return HERE / f"{self.name}.Dockerfile"

    @property
    def reference(self) -> str:
        inputs = [self.dockerfile.read_text(), *self.pins()]
        return f"{build.REPOSITORY}/{self.name}:{hashlib.sha256('|'.join(inputs).encode()).hexdigest()[:16]}"

    def build(self) -> None:
        builder, reference = build.find_builder(), self.reference
        if builder.has(reference):
            return
        flags = self.flags()
        with tempfile.TemporaryDirectory() as context:
            shutil.copyfile(self.dockerfile, Path(context) / "Dockerfile")
            self.stage(Path(context))
            builder.build(Path(context), *flags, reference=reference)
        builder.forget_older(reference)

    def to_load(self) -> ImageToLoad:
        reference = self.reference

        def archive(target: Path) -> Path:
            self.build()
            build.find_builder().save(reference, target)
            return target

        return ImageToLoad(reference, archive)


def product_image(image: build.Image) -> ImageToLoad:
    reference = image.reference
    return ImageToLoad(reference, lambda target: build.archive(image, target, reference))


def s3_server() -> str:
    """Which S3 server the tests use: HEADRACE_S3, versitygw by default."""
    name = os.environ.get("HEADRACE_S3", "versitygw")
    if name not in S3_SERVERS:
        raise MissingError(f"HEADRACE_S3={name}: there is {' and '.join(S3_SERVERS)}")
    return name


def _s3_program() -> Path:
    name = s3_server()
    return binaries.ensure((name,))[name]


def _stage_services(context: Path) -> None:
    shutil.copy(_s3_program(), context / "s3-server")
    (context / "kafka").mkdir()
    for jar in locked_jars(KAFKA_LOCK):
        shutil.copyfile(jar, context / "kafka" / jar.name)


def _stage_foreign(context: Path) -> None:
    target = context / "packages"
    how = ["--quiet", "--system-certs", "--require-hashes", "--python-version", build.PYTHON]
    command = [build.find_uv(), "pip", "install", *how, "--link-mode", "copy"]
    subprocess.run([*command, "--target", str(target), "-r", str(FOREIGN_LOCK)], check=True)
    for script in ("entrypoint.sh", "decom.sh"):
        shutil.copy(build.ROOT / "images" / script, context / script)


def _flags_foreign() -> list[str]:
    build.find_builder().ensure_base()
    return ["--build-arg", f"BASE={build.BASE}"]


SERVICES = OwnImage(
    "services",
    pins=lambda: [build.SPARK.reference, _s3_program().parent.name, KAFKA_LOCK.read_text()],
    stage=_stage_services,
    flags=lambda: ["--build-arg", f"SPARK_IMAGE={build.build(build.SPARK)}"],
)
LEDGER = OwnImage(
    "ledger",
    pins=lambda: [build.SPARK.reference],
    stage=lambda _: None,
    flags=lambda: ["--build-arg", f"SPARK_IMAGE={build.build(build.SPARK)}"],
)
FOREIGN = OwnImage(
    "foreign", pins=lambda: [FOREIGN_LOCK.read_text()], stage=_stage_foreign, flags=_flags_foreign
)
