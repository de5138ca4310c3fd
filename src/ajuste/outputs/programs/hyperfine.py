"""hyperfine's JSON (``--export-json``): each run; each command is a configuration, or the file if it has one.

Source: hyperfine 1.x, --export-json: results[].command, times, user, system, exit_codes.
"""

from __future__ import annotations

from pathlib import Path

from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.collector import Collector
from ajuste.outputs.format import DocumentFormat, DocumentNode, lists

FORMAT = "hyperfine JSON"
TIME = Metric(name="time", title="Time", unit="s", direction="lower", what="Wall-clock time of a run, by hyperfine.")


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """``name`` is the configuration if the file has a single command; several are named after themselves."""
    found = Collector(FORMAT, file)
    results = document.need("results").items()
    for result in results:
        command = name if len(results) == 1 else result.need("command").text()
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
            found.add(command, TIME, time.number())
    return found.table()


DOCUMENTS = (DocumentFormat("hyperfine", "hyperfine --export-json", lists("results", "command"), read),)
