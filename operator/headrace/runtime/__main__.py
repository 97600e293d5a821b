"""`python -m headrace.runtime`: the container command of the operator."""

import asyncio
import logging
import sys

from headrace.runtime.leading import NoLongerLeader
from headrace.runtime.operator import run_operator
from headrace.runtime.options import parse_options

log = logging.getLogger("headrace")


def main() -> int:
    options = parse_options()
    logging.basicConfig(
        level=options.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    code = 0
    try:
        asyncio.run(run_operator(options))
    except* NoLongerLeader:
        log.warning("another operator has the lease; this process ends, to come back as a stand-by")
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
