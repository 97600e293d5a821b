"""The JVM's file manager, called as Spark calls it, from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from headrace_jobs.jvm import FILE_MANAGER_CLASS
from tests.spark.checkpoint.places import Place

ALREADY_EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"
NOT_FOUND = "java.io.FileNotFoundException"
FENCED = "dev.headrace.FencedException"
DRAINED = "dev.headrace.DrainedException"


@dataclass(frozen=True)
class JvmFiles:
    """One driver's view of a place. Paths are relative to the place."""

    gateway: Any
    place: Place
    run: str | None = None
    attempt: int | None = None
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def jvm(self) -> Any:
        return self.gateway.jvm

    @property
    def control(self) -> Any:
        return self.jvm.dev.headrace.CheckpointControl

    def configuration(self) -> Any:
        conf = self.jvm.org.apache.hadoop.conf.Configuration()
        for key, value in (*self.place.conf.items(), *self.extra):
            conf.set(key.removeprefix("spark.hadoop."), value)
        if self.run is not None:
            conf.set("headrace.run.path", f"{self.place.uri}/{self.run}")
            conf.set("headrace.attempt", str(self.attempt))
            conf.set("headrace.writer.id", f"attempt-{self.attempt}")
        return conf

    def path(self, relative: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.place.uri}/{relative}")

    def manager(self, root: str = "run-1/queries/q") -> Any:
        package, _, name = FILE_MANAGER_CLASS.rpartition(".")
        return getattr(getattr(self.jvm, package), name)(self.path(root), self.configuration())

    def begin(self, relative: str, content: bytes = b"content", *, overwrite: bool = False) -> Any:
        """An open stream with content, not yet closed or cancelled."""
        stream = self.manager().createAtomic(self.path(relative), overwrite)
        stream.write(content)
        return stream

    def create(self, relative: str, content: bytes = b"content", *, overwrite: bool = False) -> None:
        """As Spark does: close, and cancel when that fails."""
        stream = self.begin(relative, content, overwrite=overwrite)
        try:
            stream.close()
        except Py4JJavaError:
            stream.cancel()
            raise

    def read(self, relative: str, manager: Any | None = None) -> bytes:
        stream = (manager or self.manager()).open(self.path(relative))
        try:
            return bytes(
                self.jvm.org.apache.hadoop.thirdparty.com.google.common.io.ByteStreams.toByteArray(stream)
            )
        finally:
            stream.close()

    def names(self, relative: str) -> list[str]:
        return sorted(status.getPath().getName() for status in self.manager().list(self.path(relative)))

    def claim(self, attempt: int, body: str = "{}") -> None:
        self.control.claim(f"{self.place.uri}/{self.run}", attempt, body, self.configuration())


def refused(error: str) -> Any:
    """Expects a Java exception of that class."""
    return pytest.raises(Py4JJavaError, check=lambda raised: class_of(raised) == error)


def class_of(error: Py4JJavaError) -> str:
    return error.java_exception.getClass().getName()


def classes_in(error: Py4JJavaError) -> list[str]:
    """The class names of an exception and of all its causes."""
    names: list[str] = []
    current = error.java_exception
    while current is not None and len(names) < 20:
        names.append(current.getClass().getName())
        current = current.getCause()
    return names
