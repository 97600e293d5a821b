"""Where things are inside the driver's container, and on which ports it listens."""

CARRIED = "/opt/headrace"  # The harness, brought by the init container.
RUN_FILES = "/etc/headrace/run"  # The ConfigMap: run.json and the executors' template.
CODE = "/etc/headrace/code"  # Application files that the run pinned in the ConfigMap.
FETCHED = "/opt/headrace-code"  # Application files from S3, put there by an init container.
REQUIREMENTS = "/opt/headrace-requirements"  # Packages that pip has installed, likewise.
S3_CA = "/etc/headrace/s3-ca/ca.crt"  # Authorities of the S3 server, in PEM.
S3_KEYS = "/etc/headrace/s3-keys"  # Access keys of the S3 server, a file for each.
TRUST = "/opt/headrace-trust"  # What the JVM trusts, when that is more than Java's own list.
TOKEN = "/etc/headrace/token"  # noqa: S105 (a directory, not a token)
KAFKA = "/etc/headrace/kafka"  # Kafka's Secrets, in executors too.
IMAGE_CODE = "/opt/app"  # Where relative paths of an application lead, in the image.
WORK = "/work"  # Writable; everything else in the container is not, but /tmp.
SPARK_LOCAL = f"{WORK}/spark"  # Shuffle files, and the local copy of the state.

RUN_FILE = "run.json"
EXECUTOR_TEMPLATE = "executor.json"
TOKEN_FILE = "token"  # noqa: S105

AGENT_PORT = 7080
DRIVER_PORT = 7078
BLOCK_MANAGER_PORT = 7079
UI_PORT = 4040


def in_container(place: str) -> str:
    """The path of a `local:///…` or relative place of the manifest; another URL stays as it is."""
    if place.startswith("local://"):
        return place.removeprefix("local://")
    return place if "://" in place else f"{IMAGE_CODE}/{place}"
