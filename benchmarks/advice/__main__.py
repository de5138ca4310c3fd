"""``python -m benchmarks.advice``."""

import sys

from benchmarks.advice import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
