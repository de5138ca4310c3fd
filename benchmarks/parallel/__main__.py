"""With ``--repeats N``, without tables."""

from benchmarks.parallel import main

main()
