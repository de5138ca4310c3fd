"""Documents of hyperfine.

Source: hyperfine 1.x, --export-json: results[].command, times, user, system, exit_codes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import excerpt
from ajuste.outputs.format import (
    Collector,
    DocumentNode,
)

HYPERFINE_FORMAT = "hyperfine JSON"
TIME = Metric(name="time", title="Time", unit="s", direction="lower", what="Wall-clock time of a run, by hyperfine.")


def read_hyperfine(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """Read a single command as the configuration ``name``, several as configurations of their own names. A command that
    is there twice (an A/A comparison) is two configurations with numbers.
    """
    collector = Collector(HYPERFINE_FORMAT, file)
    results = document.need("results").items()
    commands = [name] if len(results) == 1 else [result.need("command").text() for result in results]
    counted, seen = Counter(commands), Counter[str]()
    for repeated in (command for command, count in counted.items() if count > 1):
        collector.notes.append(
            f"{file.name}: {counted[repeated]} results have the command {excerpt(repeated)}. They are compared as "
            f"configurations (1) to ({counted[repeated]})."
        )
    for same, result in zip(commands, results, strict=True):
        seen[same] += 1
        command = same if counted[same] == 1 else f"{same} ({seen[same]})"
        times = result.get("times")
        if times is None:
            raise RequestError(
                f"{command} has only a summary; expected the times of its runs",
                place=result.place,
                hint="use hyperfine --export-json, which has every run",
            )
        listed = result.get("exit_codes")
        codes = [code.value for code in listed.items()] if listed else []
        if any(codes):
            raise RequestError(
                f"{sum(map(bool, codes))} of {len(codes)} runs of {command} failed",
                place=result.place,
                hint="fix the failure and measure again",
            )
        for time in times.items():
            collector.add(command, TIME, time.number())
    return collector.table()
