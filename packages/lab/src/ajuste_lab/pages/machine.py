"""The pages *Machine* and *Kernels*: what this machine is, how quiet it was, and which kernels it can boot."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ajuste.machine.inventory.inventory import summarise, take_inventory
from ajuste.model.error import AjusteError
from ajuste.model.wording import count_of
from ajuste.report.document import Fact, Facts, Folded, Paragraph, Picture, Report, Section
from ajuste.report.inventory_page import inventory_page
from ajuste.report.plots.plot import Plot, figure, plain, scatter, variable
from ajuste_doctor.report import diagnosis_report
from ajuste_lab.rendering import Form, document_page, handled, page, request_lab
from ajuste_lab.watch import Laboratory, QuietCheck

_KEPT_S: Final = 600.0


def machine(request: Request) -> Response:
    """Return how quiet the machine is and was, and its inventory."""
    lab = request_lab(request)
    # Asked first: a check that ends meanwhile is on the page that is loaded next.
    measuring = lab.quietness.is_measuring
    checks = lab.quietness.checks()
    return document_page(
        request,
        _machine_report(checks),
        template="machine.html.j2",
        measuring=measuring,
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
        replace(section, name=f"quiet-{place}", short="Disturbances" if place == 1 else "")
        for place, section in enumerate(last.sections)
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
    description = (
        f"{count_of(len(checks), 'check')}: the spread of a fixed job was between {lowest:.3g} % and {highest:.3g} %."
    )
    return Plot("quietness-plot", "Spread of a fixed job", description, drawn, 260, wide=True)


def check(request: Request, form: Form) -> Response:
    """Measure how quiet the machine is, in the background."""
    request_lab(request).quietness.measure(quick=form.get("length") != "full")
    return RedirectResponse("/machine", status_code=303)


def kernels(request: Request) -> Response:
    """Return the page of kernels; the list itself comes when it is known."""
    return page(request, "kernels.html.j2", anew=request.query_params.get("anew") == "yes")


def kernel_list(request: Request) -> Response:
    """Return the kernels for guests: in the archive, downloaded, and built."""
    lab = request_lab(request)
    listing, problem = _known_kernels(lab, anew=request.query_params.get("anew") == "yes")
    heads, _ = lab.runs()
    runs = Counter(kernel for head in heads for kernel in head.kernels)
    return page(
        request,
        "kernel_list.html.j2",
        kernels=listing.get("kernels", []),
        built=listing.get("built", []),
        problem=problem,
        runs=runs,
    )


def _known_kernels(lab: Laboratory, *, anew: bool) -> tuple[dict[str, Any], str]:
    # `ajuste kernel list --json` takes seconds, so its answer is cached for a while.
    stored = lab.kept_kernels
    if stored is not None and not anew and time.monotonic() - stored[0] < _KEPT_S:
        return stored[1], ""
    try:
        listing: dict[str, Any] = json.loads(lab.service.output_of(["kernel", "list", "--json"]))
    except AjusteError as error:
        return {}, error.message
    lab.kept_kernels = (time.monotonic(), listing)
    return listing, ""


ROUTES: Final = (
    Route("/machine", machine),
    Route("/machine/check", handled(check), methods=["POST"]),
    Route("/kernels", kernels),
    Route("/kernels/list", kernel_list),
)
