"""A small JVM with Spark's jars on its class path, and no Spark running in it: for work at build time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from headrace_jobs.jvm.java import find_java


@contextlib.contextmanager
def small_jvm(jars: Path, more: Sequence[Path] = ()) -> Iterator[Any]:
    """A py4j gateway to it. Ends with the block, and with this process even when it is killed."""
    (py4j_jar,) = jars.glob("py4j*.jar")
    started: Any = launch_gateway(
        jarpath=str(py4j_jar),
        classpath=os.pathsep.join([str(jars / "*"), *map(str, more)]),
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],  # short-lived: start fast
        java_path=str(find_java().executable),
        die_on_exit=True,
        enable_auth=True,
    )
    port, token = started
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway
    finally:
        gateway.shutdown()


def file_array(gateway: Any, paths: Sequence[Path]) -> Any:
    """A java.io.File[]."""
    file_class: Any = gateway.jvm.java.io.File
    array: Any = gateway.new_array(file_class, len(paths))
    for index, path in enumerate(paths):
        array[index] = file_class(str(path))
    return array
