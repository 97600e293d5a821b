"""`python -m tests.e2e`: compiles and builds what the tests need, where its progress can be seen.

Inside a test it would count against that test's time limit.
"""

import os
import sys

from images import build

from tests.cluster import binaries
from tests.cluster.console import MissingError, say
from tests.e2e.testimages import SERVICES, s3_server


def main() -> int:
    own_cluster = os.environ.get("HEADRACE_CLUSTER", "native") == "native"
    try:
        binaries.ensure((*(binaries.CLUSTER_PROGRAMS if own_cluster else ()), "kubectl", s3_server(), "helm"))
        for image in build.IMAGES.values():
            build.build(image)
        SERVICES.build()
    except (MissingError, build.BuildError) as problem:
        say(str(problem))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
