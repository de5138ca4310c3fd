"""The pages *Machine* and *Kernels*: what this machine is, how quiet it was, and which kernels it can boot."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ajuste.lab.rendering import Form, document_page, handled, lab_of, page
from ajuste.lab.watch import Laboratory, QuietCheck
from ajuste.machine.inventory.inventory import summarise, take_inventory
from ajuste.model.error import AjusteError
from ajuste.model.wording import count_of
from ajuste.report.diagnosis import diagnosis_report
from ajuste.report.document import Fact, Facts, Folded, Paragraph, Picture, Report, Section
from ajuste.report.inventory_page import inventory_page
from ajuste.report.plots.plot import Plot, figure, plain, scatter, variable

_KEPT_S: Final = 600.0


def machine(request: Request) -> Response:
    """How quiet it is and was, and its inventory."""
    lab = lab_of(request)
    checks = lab.quietness.checks()
    return document_page(
        request,
        _machine_report(checks),
        template="machine.html.j2",
        measuring=lab.quietness.is_measuring,
        problem=lab.quietness.problem,
        checked=checks[-1].at.isoformat() if checks else "",
    )


def _machine_report(checks: list[QuietCheck]) -> Report:
    inventory = take_inventory()
    summary = tuple(Fact(name, text) for name, text in summarise(inventory).items())
    areas = tuple(Folded(area.title, (Facts(area.facts),)) for area in inventory_page(inventory))
    about = "Everything that can decide how fast a program runs here. Each run keeps it, for comparisons."
    hardware = Section("What this machine is", (Facts(summary), *areas), "inventory", "Inventory", about)
    if not checks:
        return Report("This machine", "Noise not measured yet.", (hardware,))
    last = diagnosis_report(checks[-1].diagnosis)
    over_time = (
        Section(
            "Quietness over time",
            (Picture(_spread_plot(checks)),) if len(checks) > 1 else (Paragraph("One check so far; two make a line."),),
            "quietness",
            "Over time",
            "By how much runs of a fixed job spread, each time that it was checked.",
        ),
    )
    named = tuple(
        Section(one.title, one.blocks, f"quiet-{place}", ("Disturbances" if place == 1 else ""), one.about, one.depth)
        for place, one in enumerate(last.sections)
    )
    return Report("This machine", last.headline, (*named[:2], *over_time, *named[2:], hardware))


def _spread_plot(checks: list[QuietCheck]) -> Plot:
    times = [check.at.isoformat() for check in checks]
    spreads = [check.diagnosis.spread_percent for check in checks]
    trace = scatter(
        "lines+markers",
        times,
        spreads,
        [plain(f"{value:.3g} %, {at[:16].replace('T', ' ')}") for value, at in zip(spreads, times, strict=True)],
        line={"color": variable("series-1"), "width": 2},
        marker={"size": 8, "color": variable("series-1")},
    )
    drawn = figure(
        [trace],
        xaxis={"type": "date"},
        yaxis={"title": {"text": "spread, %"}, "rangemode": "tozero"},
    )
    lowest, highest = min(spreads), max(spreads)
    said = (
        f"{count_of(len(checks), 'check')}: the spread of a fixed job was between {lowest:.3g} % and {highest:.3g} %."
    )
    return Plot("quietness-plot", "Spread of a fixed job", said, drawn, 260, wide=True)


def check(request: Request, form: Form) -> Response:
    """Measure how quiet it is, in the background."""
    lab_of(request).quietness.measure(quick=form.get("length") != "full")
    return RedirectResponse("/machine", status_code=303)


def kernels(request: Request) -> Response:
    """The page of kernels; the list itself comes when it is known."""
    return page(request, "kernels.html.j2", anew=request.query_params.get("anew") == "yes")


def kernel_list(request: Request) -> Response:
    """Those that guests can have: what the archive has, what is here, and what was built."""
    lab = lab_of(request)
    found, problem = _known_kernels(lab, anew=request.query_params.get("anew") == "yes")
    heads, _ = lab.runs()
    runs = Counter(head.kernel for head in heads)
    return page(
        request,
        "kernel_list.html.j2",
        kernels=found.get("kernels", []),
        built=found.get("built", []),
        problem=problem,
        runs=runs,
    )


def _known_kernels(lab: Laboratory, *, anew: bool) -> tuple[dict[str, Any], str]:
    """As ``ajuste kernel list --json`` says, which takes seconds, and so is asked for now and then."""
    kept = lab.kept_kernels
    if kept is not None and not anew and time.monotonic() - kept[0] < _KEPT_S:
        return kept[1], ""
    try:
        found: dict[str, Any] = json.loads(lab.service.asked(["kernel", "list", "--json"]))
    except AjusteError as error:
        return {}, error.message
    lab.kept_kernels = (time.monotonic(), found)
    return found, ""


ROUTES: Final = (
    Route("/machine", machine),
    Route("/machine/check", handled(check), methods=["POST"]),
    Route("/kernels", kernels),
    Route("/kernels/list", kernel_list),
)
