"""`python -m headrace_jobs.keeper check|seed|fetch|delete|trust …`"""

import sys

from headrace_jobs.keeper.main import main

sys.exit(main())
