"""The JSON lines of ``perf stat -j``: an object for each event, and with ``-r N`` the spread of N runs.

Source: linux, tools/perf/util/stat-display.c: counter-value, unit, event, variance (the relative standard error of the
mean, in per cent), and perf-stat(1).
"""

from __future__ import annotations

from pathlib import Path

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import Table
from ajuste.outputs.collector import Collector
from ajuste.outputs.document import DocumentNode, parse_document
from ajuste.outputs.perf import FORMAT, NotCounted, add_event


def recognise(text: str) -> bool:
    """Whether a text is of this kind."""
    lines = (line for line in text[:65536].splitlines() if line.strip() and not line.startswith("#"))
    first = next(lines, "")
    return first.startswith("{") and '"counter-value"' in first


def read(text: str, name: str, file: Path, runs: int | None) -> Table:
    """``runs`` is the N of ``-r N``, which perf does not print here."""
    found = Collector(FORMAT, file)
    skipped = NotCounted(file)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            event = parse_document(line, file)
        except RequestError as error:
            raise RequestError(error.message, place=Place(file, number)) from None
        _add(found, skipped, name, event, number, runs)
    return skipped.noted(found).table()


def _add(found: Collector, skipped: NotCounted, name: str, event: DocumentNode, line: int, runs: int | None) -> None:
    if event.get("event") is None or event.get("counter-value") is None:
        return
    text = event.need("counter-value").value
    for key, option in (("interval", "-I"), ("cpu", "-A"), ("thread", "--per-thread")):
        if event.get(key) is not None:
            raise RequestError(
                f"{option} is not supported: parts of a run are not repetitions", place=Place(found.file, line)
            )
    if isinstance(text, str) and text.startswith("<not"):
        skipped.add(event.need("event").text())
        return
    try:
        value = float(text)
    except (TypeError, ValueError):
        wrong = event.need("counter-value").wrong("a number")
        raise RequestError(wrong.message, place=Place(found.file, line)) from None
    variance = event.get("variance")
    unit = event.get("unit")
    add_event(
        found,
        name,
        event.need("event").text(),
        unit.text() if unit else "",
        value,
        spread_percent=variance.number() if variance else None,
        runs=runs,
        line=line,
    )
