"""python -m headrace_jobs.lookout"""

import sys

from headrace_jobs.lookout.main import main

sys.exit(main())
