"""`python -m tests.e2e`: compiles and builds what the tests need, where its progress can be seen.

Inside a test it would count against that test's time limit.
"""

import sys

from images import build

from tests.cluster import binaries, provider
from tests.cluster.console import MissingError, say
from tests.e2e.testimages import FOREIGN, LEDGER, SERVICES, s3_server


def main() -> int:
    try:
        own_cluster = provider.chosen() == "native"
        binaries.ensure((*(binaries.CLUSTER_PROGRAMS if own_cluster else ()), "kubectl", s3_server(), "helm"))
        for image in build.IMAGES.values():
            build.build(image)
        # The last two are for a few long tests, which build them where they can be loaded.
        for image in (SERVICES,) if own_cluster else (SERVICES, LEDGER, FOREIGN):
            image.build()
        if not own_cluster:
            references = [image.reference for image in (*build.IMAGES.values(), SERVICES, LEDGER, FOREIGN)]
            sys.stdout.write("\n".join(references) + "\n")
    except (MissingError, build.BuildError) as problem:
        say(str(problem))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
