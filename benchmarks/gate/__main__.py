from benchmarks.gate import main

main()
