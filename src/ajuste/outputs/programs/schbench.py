"""schbench: quantiles of wake-up and request latencies, and of requests a second; its text or its JSON (``-j``).

Source: schbench.c (show_latencies, write_json_stats). Reports of intervals come before the last one, which counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, finite
from ajuste.outputs.collector import Collector
from ajuste.outputs.format import DocumentFormat, DocumentNode, parse_document
from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

_US: Final = 1e-6
_MAIN_OF_JSON: Final = ("rps-p50", "wakeup-latency-p99", "request-latency-p99")


def _figure(kind: str, which: str) -> Metric:
    if kind == "rps":
        return printed_metric(f"rps-{which}", f"Requests a second, {which}", "1/s", "higher", step=1, can_be_0=True)
    title = f"{kind.capitalize()} latency, {which}"
    return printed_metric(f"{kind}-latency-{which}", title, "s", "lower", step=_US, can_be_0=True)


def _table(section: str) -> tuple[PrintedRow, PrintedRow]:
    kind = section.lower()
    return (
        PrintedRow(
            rf"\s+(?:\* ?)?(?P<which>{NUMBER})th: ",
            rf"({NUMBER})\s+\({NUMBER} samples\)",
            (_figure(kind, "p{}"),),
            section=section,
            factor=_US if kind != "rps" else 1.0,
        ),
        PrintedRow(
            r"\s+min=",
            rf"({NUMBER}), max=({NUMBER})",
            (_figure(kind, "min"), _figure(kind, "max")),
            section=section,
            factor=_US if kind != "rps" else 1.0,
        ),
    )


REPORT: Final = PrintedReport(
    name="schbench",
    title="schbench",
    begins=r"^(?:Wakeup|Request|RPS)\b.{0,20} percentiles \(",
    needed=("wakeup-latency-p99", "average-rps"),
    main=r"average-rps|(?:wakeup|request)-latency-p99",
    heading=r"^(Wakeup|Request|RPS)\b.{0,20} percentiles \(",
    ends=r"^average rps: ",
    rows=(
        *_table("Wakeup"),
        *_table("Request"),
        *_table("RPS"),
        PrintedRow(
            r"average rps: ",
            rf"({NUMBER})",
            (printed_metric("average-rps", "Requests a second", "1/s", "higher", step=0.01, can_be_0=True),),
        ),
    ),
)
TEXTS: Final = REPORT.texts()


# Its JSON: one value of each figure.


def recognise(document: DocumentNode) -> bool:
    """Whether a document is of this kind."""
    whole = document.value
    return isinstance(whole, dict) and isinstance(whole.get("int"), dict) and "wakeup_latency_pct50.0" in whole["int"]


def read(document: DocumentNode, name: str, file: Path) -> MeasuredTable:
    """The members of ``int``, named as the text calls them."""
    found = Collector("schbench JSON", file)
    for metric, value in _json_figures(document):
        found.add(name, metric, value)
        if metric.name in _MAIN_OF_JSON:
            found.main.add(metric.name)
    return found.table()


def _json_figures(document: DocumentNode) -> Iterator[tuple[Metric, float]]:
    for key, value in document.need("int").members():
        kind, _, which = key.rpartition("_")
        kind = kind.removesuffix("_latency")
        if kind in ("wakeup", "request", "rps"):
            factor = 1.0 if kind == "rps" else _US
            yield _figure(kind, which.replace("pct", "p").removesuffix(".0")), value.number() * factor


def parse(output: str) -> dict[str, float]:
    """The figures of its JSON on standard output (``-j -``), or of its report, which it prints to standard error."""
    if not output.lstrip().startswith("{"):
        return REPORT.parse(output)
    try:
        document = parse_document(output, Path("stdout"))
        return {f"schbench.{metric.name}": finite(value, metric.name) for metric, value in _json_figures(document)}
    except RequestError as error:
        raise ParseError(f"schbench printed no complete report: {error}") from None


DOCUMENTS: Final = (DocumentFormat("schbench", "schbench -j", recognise, read),)
