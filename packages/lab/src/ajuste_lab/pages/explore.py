"""The page *Explore*: all trials of a run as linked plots, which the browser draws from columns of plain numbers."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ajuste.model.error import RequestError
from ajuste.model.measurements import Measurements
from ajuste.model.surface import SURFACES
from ajuste.model.timeline import TIMELINES
from ajuste.report.format import result_labels
from ajuste.store.head import Run
from ajuste.study.resolved import ResolvedStudy
from ajuste_lab.rendering import page, request_run
from ajuste_lab.watch import Laboratory

if TYPE_CHECKING:
    from ajuste.store.store import Store

_NAMED: Final = ("block", "position", "attempt")
_VIEWS: Final = (
    ("order", "In the order of measurement"),
    ("ecdf", "Distribution"),
    ("ridge", "Density of each configuration"),
    ("scatter", "One metric against another"),
    ("surface", "Means over two settings, the set of the best outlined"),
    ("parallel", "Levels and results"),
    ("timelines", "Timelines"),
)
_STATUSES: Final = ("ok", "flagged", "failed")


def show(request: Request) -> Response:
    """Return the page with its choices; the numbers come later."""
    lab, run = request_run(request)
    measured = _measured(lab, run)
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    return page(
        request,
        "explore.html.j2",
        run=run,
        title=resolved.study.title or run.study,
        count=len(measured),
        explored=_about(run, resolved, measured),
        views=_VIEWS,
    )


def _about(run: Run, resolved: ResolvedStudy, measured: Measurements) -> dict[str, Any]:
    known = {metric.name: metric for metric in (*resolved.deciding, *resolved.described)}
    deciding = [metric.name for metric in resolved.deciding]
    names = sorted(measured.metrics, key=lambda name: (name not in deciding, name))
    levels = {entry.configuration.name: entry.configuration.levels for entry in resolved.configurations}
    hues = {name: place for place, name in enumerate(sorted(levels, key=lambda name: name != resolved.baseline))}
    return {
        "run": run.id,
        "count": len(measured),
        "configurations": [
            {
                "name": name,
                "levels": levels.get(name, {}),
                "baseline": name == resolved.baseline,
                "hue": hues.get(name, place),
            }
            for place, name in enumerate(measured.configuration.values)
        ],
        "metrics": [
            {
                "name": name,
                "title": known[name].title if name in known else name,
                "unit": known[name].unit if name in known else "",
            }
            for name in names
        ],
        "factors": [factor.name for factor in resolved.factors],
        "statuses": _STATUSES,
    }


def column(request: Request) -> Response:
    """Return a column of all trials, little-endian: 64-bit floats of a metric, 32-bit integers of all else."""
    lab, run = request_run(request)
    measured = _measured(lab, run)
    name = request.query_params.get("name", "")
    if metric := request.query_params.get("metric"):
        if metric not in measured.metrics:
            raise RequestError(f"metric {metric[:80]!r} not found in run {run.id}", hint="choose one of the page")
        content = np.asarray(measured.metrics[metric], "<f8").tobytes()
    elif name == "configuration":
        content = np.asarray(measured.configuration.codes, "<i4").tobytes()
    elif name == "status":
        # Indices into `_STATUSES`; 3 marks trials of warm-up blocks.
        of_value = np.array([_STATUSES.index(value) for value in measured.status.values] or [0], "<i4")
        places = of_value[measured.status.codes] if len(measured) else np.array([], "<i4")
        content = np.where(measured.warm_up, 3, places).astype("<i4").tobytes()
    elif name in _NAMED:
        content = np.asarray(getattr(measured, name), "<i4").tobytes()
    else:
        raise RequestError(f"column {name[:80]!r} not found", hint="reload the page")
    headers = {"cache-control": "private, max-age=60" if run.stopped else "no-store"}
    return Response(content, media_type="application/octet-stream", headers=headers)


def _measured(lab: Laboratory, run: Run) -> Measurements:
    store = lab.service.store
    return _read(store, run.id, store.count(run))


@lru_cache(maxsize=4)
def _read(store: Store, run_id: str, count: int) -> Measurements:  # noqa: ARG001 - see below
    # `count` is a part of what is remembered: a run that goes on has more by now.
    return store.measurements(store.find_run(run_id))


def document(request: Request) -> Response:
    """Return the content of the page, for a program."""
    lab, run = request_run(request)
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    text = json.dumps(_about(run, resolved, _measured(lab, run)))
    return Response(text, media_type="application/json")


def analysed(request: Request) -> Response:
    """Return the parts of the analysis that plots need: levels, labels, the best, samplers' readings."""
    lab, run = request_run(request)
    results = lab.service.results(run)
    labels = result_labels(results)
    short = labels.by_name(results)
    content = {
        "levels": {configuration.name: configuration.levels for configuration in results.configurations},
        "short": short if len({*short.values()}) == len(short) else {},
        "of": [factor.name for factor in labels.factors],
        "shown": {
            factor.name: {level: labels.level(factor.name, level) for level in factor.levels}
            for factor in results.factors
        },
        "surfaces": [surface.model_dump(include={"metric", "best_set"}) for surface in SURFACES.of(results)],
        "timelines": [timeline.model_dump() for timeline in TIMELINES.of(results)],
    }
    return JSONResponse(content)


ROUTES: Final = (
    Route("/runs/{run}/explore", show),
    Route("/runs/{run}/explore.json", document),
    Route("/runs/{run}/analysed.json", analysed),
    Route("/runs/{run}/column", column),
)
