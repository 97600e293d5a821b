"""`python -m headrace_jobs.harness --run-file run.json`"""

import sys

from headrace_jobs.harness.main import main

if __name__ == "__main__":
    sys.exit(main())
