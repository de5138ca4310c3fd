"""``promql:URL#QUERY``: a query to Prometheus itself, by its HTTP API. What it answers is averaged."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote

from ajuste.model.error import RequestError
from ajuste.run.live.reading import Shown, level
from ajuste.run.live.source import NothingShownError, Source
from ajuste.run.live.web import page, require_web

KIND: Final = "promql"


def open_source(where: str) -> Source:
    """The query after the ``#`` of the server's URL. Raises RequestError."""
    url, hash_, query = where.partition("#")
    require_web(url)
    if not hash_ or not query.strip():
        raise RequestError("the query is missing; expected URL#QUERY", hint=f"write {url}#rate(demo_total[30s])")
    address = f"{url.rstrip('/')}/api/v1/query?query={quote(query, safe='')}"
    return Source(url, lambda: _answer(address), level)


def _answer(address: str) -> Shown:
    """An instant vector of one element, or a scalar.

    Source: the HTTP API of Prometheus.
    """
    try:
        document = json.loads(page(address))
        data = document["data"]
        result = data["result"]
        if data["resultType"] == "scalar":
            return (float(result[1]),)
        if len(result) != 1:
            raise NothingShownError(f"the query has {len(result)} results; expected one")
        return (float(result[0]["value"][1]),)
    except (ValueError, KeyError, TypeError, IndexError):
        raise NothingShownError("the answer is not that of Prometheus' HTTP API") from None
