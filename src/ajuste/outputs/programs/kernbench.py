"""A build of a kernel, timed by a shell: the line that the workload ``kernbench`` prints.

Source: src/ajuste/catalogue/workloads/kernbench.toml (TIMEFORMAT of bash(1)).
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

REPORT: Final = PrintedReport(
    name="kernbench",
    title="kernbench",
    begins=r"^kernbench: elapsed ",
    needed=("elapsed",),
    main="elapsed",
    rows=(
        PrintedRow(
            r"kernbench: ",
            rf"elapsed ({NUMBER}) s, user ({NUMBER}) s, system ({NUMBER}) s, cpu ({NUMBER})%",
            (
                printed_metric("elapsed", "Time of the build", "s", "lower", step=1e-3),
                printed_metric("user", "CPU time in user space", "s", "lower", step=1e-3),
                printed_metric("system", "CPU time in the kernel", "s", "lower", step=1e-3),
                printed_metric("cpu", "CPUs used", "%", "none", step=0.01),
            ),
        ),
    ),
)
parse = REPORT.parse
