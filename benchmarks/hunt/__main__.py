"""``python -m benchmarks.hunt``."""

import sys

from benchmarks.hunt import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
