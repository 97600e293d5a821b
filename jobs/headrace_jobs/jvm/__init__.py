"""The JVM's side of a job: a Java to run on, Headrace's jar, and the connectors' jars."""

from headrace_jobs.jvm.build import JarNotBuilt, UnsupportedSpark, check_spark_version, jar_path
from headrace_jobs.jvm.java import JavaMissing, JavaRuntime, find_java, java_environment

FILE_MANAGER_CLASS = "dev.headrace.HeadraceCheckpointFileManager"

__all__ = [
    "FILE_MANAGER_CLASS",
    "JarNotBuilt",
    "JavaMissing",
    "JavaRuntime",
    "UnsupportedSpark",
    "check_spark_version",
    "find_java",
    "jar_path",
    "java_environment",
]
