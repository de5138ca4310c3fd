"""Run the benchmark; with ``--repeats N``, without tables."""

from benchmarks.parallel import main

main()
