"""The page *Compare*: several runs side by side, and what differs between where they were measured."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ajuste.lab.index import NOTHING_KNOWN
from ajuste.lab.pages.runs import row_of
from ajuste.lab.rendering import document_page, lab_of, page
from ajuste.model.error import RequestError
from ajuste.report.side_by_side import SideBySide, side_by_side, side_by_side_document, side_by_side_report

MOST_COMPARED: Final = 12
_OFFERED: Final = 40


def show(request: Request) -> Response:
    """The comparison of the runs in the address; of fewer than two, a choice of those that go with them."""
    chosen = _chosen(request)
    if len(chosen) < 2:
        return _offer(request, chosen)
    compared = _compared(request, chosen)
    return document_page(request, side_by_side_report(compared), template="compare.html.j2", compared=compared)


def document(request: Request) -> Response:
    """The same for a program."""
    return JSONResponse(side_by_side_document(_compared(request, _chosen(request))))


def _chosen(request: Request) -> list[str]:
    chosen = list(dict.fromkeys(request.query_params.getlist("run")))
    if len(chosen) > MOST_COMPARED:
        raise RequestError(
            f"{len(chosen)} runs were chosen; expected at most {MOST_COMPARED}", hint="choose fewer runs"
        )
    return chosen


def _compared(request: Request, chosen: list[str]) -> SideBySide:
    service = lab_of(request).service
    return side_by_side([service.results(service.run(one)) for one in chosen])


def _offer(request: Request, chosen: list[str]) -> Response:
    lab = lab_of(request)
    heads, facts = lab.runs()
    study = next((head.study for head in heads if head.id in chosen), "")
    offered = sorted((head for head in heads if head.stopped), key=lambda head: head.study != study)[:_OFFERED]
    rows = [row_of(head, facts.get(head.id, NOTHING_KNOWN), going_on=False) for head in offered]
    return page(request, "choose.html.j2", rows=rows, chosen=chosen, study=study)


ROUTES: Final = (Route("/compare", show), Route("/compare.json", document))
