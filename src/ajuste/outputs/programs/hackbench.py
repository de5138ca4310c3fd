"""hackbench: how fast tasks hand on messages."""

from __future__ import annotations

import re
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, excerpt, figure
from ajuste.outputs.format import Collector, ResultSource, TextFormat, in_beginning

_TIME = re.compile(r"^Time:[ \t]*(\S{1,40})[ \t]*$", re.MULTILINE)

HACKBENCH_FORMAT: Final = "hackbench"
_BEGUN: Final = re.compile(r"^[ \t]*(?:Total time|Time):", re.MULTILINE)

_HACKBENCH_RUN: Final = re.compile(
    r"^\s*(?:Total time|Time):[ \t]*(?P<seconds>\d{1,9}(?:\.\d{1,9})?)(?:[ \t]*\[sec\])?[ \t]*$"
)

TIME: Final = Metric(
    name="time", title="Hackbench time", unit="s", direction="lower", what="What hackbench printed for each run."
)


def parse(output: str) -> dict[str, float]:
    """Return ``hackbench.time``: seconds from the first message to the last, as hackbench measures it itself."""
    times = _TIME.findall(output)
    if len(times) != 1:
        raise ParseError(
            f"hackbench printed {len(times)} lines of the form Time: SECONDS instead of one: {excerpt(output)}"
        )
    return {"hackbench.time": figure(times[0], "hackbench's time")}


# The output of hackbench (rt-tests, or perf bench sched messaging): each run printed is a value.
#
# Source: hackbench(8) of rt-tests ("Time: 0.123"), and perf-bench(1) ("Total time: 0.123 [sec]").


def read(source: ResultSource) -> MeasuredTable:
    """Read every line with a time as a value of the configuration."""
    collector = Collector(HACKBENCH_FORMAT, source.file)
    for number, line in enumerate(source.text.splitlines(), start=1):
        if time := _HACKBENCH_RUN.match(line[:200]):
            collector.add(source.name, TIME, float(time["seconds"]), line=number)
        elif _BEGUN.match(line):
            raise RequestError(f"found {line.strip()[:60]!r}; expected a time", place=Place(source.file, number))
    return collector.table()


TEXTS: Final = (
    TextFormat(
        "hackbench",
        "hackbench",
        in_beginning(_BEGUN),
        read,
        reads="hackbench of rt-tests and `perf bench sched messaging`: each printed time.",
    ),
)
