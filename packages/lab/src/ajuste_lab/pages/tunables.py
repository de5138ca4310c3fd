"""The page *Tunables*, and one for each tunable: effect, place in each kernel, value here, and runs."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import kernels, span
from ajuste.catalogue.servers import ANY_TEXT
from ajuste.model.error import AjusteError
from ajuste.model.tunable import RISKS, Tunable
from ajuste_lab.index import NOTHING_KNOWN
from ajuste_lab.pages.runs import run_row
from ajuste_lab.rendering import page, request_lab

_MOST_RUNS: Final = 100


def listed(request: Request) -> Response:
    """Return the catalogue by subsystem, or the tunables that match a search."""
    known = catalogue()
    words = request.query_params.get("find", "").strip()[:200]
    matches = known.search(words.split()) if words else list(known.tunables.values())
    _, facts = request_lab(request).runs()
    tried = Counter(name.partition("[")[0] for entry in facts.values() for name in entry.settings)
    groups = (
        [("", matches)]
        if words
        else [(name, list(group)) for name, group in groupby(matches, key=lambda t: t.subsystem)]
    )
    return page(
        request,
        "tunables.html.j2",
        groups=groups,
        kernels=kernels,
        tried=tried,
        find=words,
        count=len(matches),
        place=tunable_address,
    )


def show(request: Request) -> Response:
    """Return the page of a tunable."""
    known = catalogue()
    tunable = known.find_tunable(request.path_params["name"])
    heads, facts = request_lab(request).runs()
    touched = [
        head
        for head in heads
        if any(name.partition("[")[0] == tunable.entry for name in facts.get(head.id, NOTHING_KNOWN).settings)
    ]
    example = known.example(tunable).name
    related = (*tunable.see, *filter(None, (tunable.successor, tunable.predecessor)))
    return page(
        request,
        "tunable.html.j2",
        tunable=tunable,
        kernels=kernels(tunable),
        spans=[(span(where), where) for where in tunable.where],
        matters=[condition.met for condition in known.relevance_conditions(tunable)],
        values=values_text(tunable),
        risk=RISKS.get(tunable.risk, ""),
        example=example,
        rows=[run_row(head, facts[head.id], going_on=False) for head in touched[:_MOST_RUNS]],
        try_it="/new?" + urlencode({"setting": example, "levels": ", ".join(levels_to_try(tunable))}),
        here_address=f"{tunable_address(tunable)}/here",
        others=[known.tunables[name] for name in related if name in known.tunables],
        place=tunable_address,
    )


def here(request: Request) -> Response:
    """Return its value on this machine, as a part of its page: asking the machine takes a second."""
    lab = request_lab(request)
    tunable = catalogue().find_tunable(request.path_params["name"])
    current: dict[str, Any] = {}
    problem = ""
    try:
        current = json.loads(lab.service.output_of(["tunables", "show", tunable.name, "--json"]))
    except AjusteError as error:
        problem = error.message
    return page(request, "tunable_here.html.j2", found=current, problem=problem, unit=tunable.unit)


def tunable_address(tunable: Tunable) -> str:
    """Return the address of a tunable's page."""
    return f"/tunables/{quote(tunable.entry, safe='')}"


def levels_to_try(tunable: Tunable) -> tuple[str, ...]:
    """Return its default and values on both sides of it, or its choices."""
    if tunable.type == "boolean":
        return tunable.choices or ("0", "1")
    if tunable.type == "choice":
        return tunable.choices[:4]
    initial = next((where.initial for where in reversed(tunable.where) if where.initial), tunable.default)
    if tunable.type != "integer" or not initial.lstrip("-").isdecimal():
        return ()
    value, low, high = int(initial), tunable.minimum or 0, tunable.maximum or 0
    around = (value, value // 4, value * 4) if value else (0, 1, min(high, 10))
    return tuple(dict.fromkeys(str(max(low, min(high, level))) for level in around))


def values_text(tunable: Tunable) -> str:
    """Return its possible values, in words."""
    if tunable.type in ("cpu-list", "cpu-mask"):
        return "a list of CPUs, such as 0,2 or 0-3"
    if tunable.type == "choice":
        return ", ".join(tunable.choices)
    if tunable.type == "boolean":
        return " or ".join(tunable.choices or ("0", "1")) + " (off, on)"
    if tunable.type == "text":
        return ANY_TEXT
    special = [f"{value} = {meaning}" for value, meaning in tunable.special.items()]
    unit = f" {tunable.unit}" if tunable.unit else ""
    count = f"{tunable.count or 'several'} numbers, each " if tunable.type == "integers" else ""
    return "; ".join([f"{count}{tunable.minimum} … {tunable.maximum}{unit}", *special])


ROUTES: Final = (
    Route("/tunables", listed),
    Route("/tunables/{name:path}/here", here),
    Route("/tunables/{name:path}", show),
)
