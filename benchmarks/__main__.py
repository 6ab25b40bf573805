"""`python -m benchmarks`: see run.py."""

import sys

from benchmarks.run import main

sys.exit(main())
