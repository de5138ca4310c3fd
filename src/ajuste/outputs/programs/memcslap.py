"""memcslap of libmemcached: how long it took to store all keys and to get them.

Source: libmemcached-awesome 1.1, src/bin/memslap.cc (main).
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric


def _time(label: str, name: str, title: str) -> PrintedRow:
    return PrintedRow(
        rf"{label}:\s+",
        rf"({NUMBER}) seconds\.",
        (printed_metric(name, title, "s", "lower", step=1e-3, can_be_0=True),),
    )


REPORT: Final = PrintedReport(
    name="memcslap",
    title="memcslap",
    begins=r"^Time to generate\s+\d+ test keys:",
    needed=("total",),
    main="get|set|mget",
    rows=(
        _time(r"Time to generate\s+\d+ test keys", "generate", "Time to make the keys"),
        _time(r"Time to set\s+\d+ keys by\s+\d+ threads", "set", "Time to set the keys"),
        _time(r"Time to set\s+\d+ keys", "fill", "Time to fill the server"),
        _time(r"Time to get\s+\d+ keys by\s+\d+ threads", "get", "Time to get the keys"),
        _time(r"Time to mget\s+\d+ keys by\s+\d+ threads", "mget", "Time to get the keys together"),
        _time(r"Time to start\s+\d+ threads", "start", "Time to start the threads"),
        _time(r"Time total", "total", "Time of all"),
    ),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse
