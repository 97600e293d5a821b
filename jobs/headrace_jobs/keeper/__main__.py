"""`python -m headrace_jobs.keeper check|seed|delete …`"""

import sys

from headrace_jobs.keeper.main import main

sys.exit(main())
