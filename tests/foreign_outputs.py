"""Outputs as other programs write them."""

from __future__ import annotations

from typing import Any

PERF = """\

 Performance counter stats for './matrix1' (5 runs):

          2,510.31 msec task-clock                #    0.997 CPUs utilized            ( +-  0.53% )
               333      context-switches          #  132.653 /sec                     ( +-  2.10% )
     <not counted>      cycles
            7.0000 Joules power/energy-pkg/

            2.5187 +- 0.0133 seconds time elapsed  ( +-  0.53% )

"""
GERMAN = """\

 Performance counter stats for './matrix1' (5 runs):

          2.510,31 msec task-clock                #    0,997 CPUs utilized            ( +-  0,53% )
           1.333        context-switches          #  132,653 /sec                     ( +-  2,10% )

            2,5187 +- 0,0133 seconds time elapsed  ( +-  0,53% )

"""
LINPACK = """\
Memory required:  315K.

LINPACK benchmark, Double precision.
Machine precision:  15 digits.
Array size 200 X 200.
Average rolled and unrolled performance:

    Reps Time(s) DGEFA   DGESL  OVERHEAD    KFLOPS
----------------------------------------------------
    2048   0.99  84.20%   2.92%  12.88%  3254116.504
    4096   1.98  84.40%   2.82%  12.78%  3263018.275
"""
GOOGLE: dict[str, Any] = {
    "context": {"num_cpus": 2},
    "benchmarks": [
        {"name": "BM_x", "run_type": "iteration", "real_time": 2.5, "cpu_time": 2.0, "time_unit": "us"},
        {"name": "BM_x", "run_type": "iteration", "real_time": 2.7, "cpu_time": 2.1, "time_unit": "us"},
        {"name": "BM_x_mean", "run_name": "BM_x", "run_type": "aggregate", "real_time": 2.6, "time_unit": "us"},
    ],
}  # fmt: skip
PYPERF: dict[str, Any] = {
    "version": "1.0",
    "metadata": {"name": "bench", "unit": "second"},
    "benchmarks": [{"runs": [{"warmups": [[1, 0.5]]}, {"values": [0.1, 0.2]}, {"values": [0.3]}]}],
}
