"""The Spark session: made before the user's code runs, and handed to it by its own `getOrCreate()`.

User code stays as it is. What it may not do here is guarded: it cannot choose the master or an owned
setting, and `spark.stop()` does not end the JVM under queries that still run.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.utils import to_str

from headrace_jobs.harness.conf import PLATFORM_CONF, check_user_conf, owned_key
from headrace_jobs.harness.driver_jvm import Gateway
from headrace_jobs.harness.patches import Patches

log = logging.getLogger("headrace")


def open_session(gateway: Gateway) -> SparkSession:
    """The session in the JVM behind `gateway`; its settings are already there."""
    # Spark's own way to use a JVM that runs already. Taken out again: children need no secret.
    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.secret
    try:
        connected = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    return SparkSession(SparkContext(gateway=connected))


def guard_session(patches: Patches) -> None:
    """Makes every way to a session or a context lead to the one that runs already."""
    patches.replace(SparkSession.Builder, "getOrCreate", _checked_builder)
    patches.replace(SparkSession.Builder, "create", _checked_builder)
    patches.replace(SparkSession, "stop", _kept_running)
    patches.replace(SparkContext, "stop", _kept_running)
    patches.replace(SparkContext, "__init__", _existing_context)


def _checked_builder(original: Any) -> Any:
    def get_or_create(builder: Any) -> SparkSession:
        given = {key: str(to_str(value)) for key, value in builder._options.items()}
        ours = {key for key in given if key in PLATFORM_CONF or owned_key(key) is not None}
        # `config(conf=SparkConf())` repeats all settings of the driver: only what differs is the user's.
        changed = {key: given[key] for key in ours if given[key] != _driver_setting(key)}
        check_user_conf(changed, where="SparkSession.builder")
        for key in sorted(changed):
            log.warning("SparkSession.builder sets %s: ignored, it comes from the manifest", key)
        builder._options = {key: value for key, value in builder._options.items() if key not in ours}
        return original(builder)

    return get_or_create


def _driver_setting(key: str) -> str | None:
    context = SparkContext._active_spark_context
    return context.getConf().get(key, None) if context is not None else None


def _kept_running(_original: Any) -> Any:
    def stop(_self: Any) -> None:
        log.info("spark.stop() was called: the driver ends by itself when all queries have ended")

    return stop


def _existing_context(original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes one
        active = SparkContext._active_spark_context
        if active is None:
            original(self, *args, **kwargs)
            return
        log.warning("SparkContext(…): the job gets the driver's own context; the arguments are ignored")
        self.__dict__ = active.__dict__

    return __init__
