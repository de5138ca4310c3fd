"""``promql:URL#QUERY``: a query to Prometheus itself, by its HTTP API. Answers are averaged. Its last day predicts the
noise before the experiment begins.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final
from urllib.parse import quote, urlencode

from ajuste.model.error import RequestError
from ajuste_live.reading import PAST_SECONDS, Figures, NothingShownError, Source, level, page, require_web

KIND: Final = "promql"
_DAY_S: Final = 86_400.0
_MOST_SLICES: Final = 2_000


def open_source(where: str) -> Source:
    """Open the query after the ``#`` of the server's URL. Raises RequestError."""
    url, hash_, query = where.partition("#")
    require_web(url)
    if not hash_ or not query.strip():
        raise RequestError("the query is missing; expected URL#QUERY", hint=f"write {url}#rate(demo_total[30s])")
    api = f"{url.rstrip('/')}/api/v1"
    address = f"{api}/query?query={quote(query, safe='')}"
    return Source(
        url, lambda: _now(address), level, past=lambda every_s, counted_s: _past(api, query, every_s, counted_s)
    )


def _now(address: str) -> Figures:
    # An instant vector of one element, or a scalar.
    #
    # Source: the HTTP API of Prometheus.
    try:
        data = json.loads(page(address))["data"]
        if data["resultType"] == "scalar":
            return (float(data["result"][1]),)
        return (float(_only(data["result"])["value"][1]),)
    except (ValueError, KeyError, TypeError, IndexError):
        raise _other() from None


def _past(api: str, query: str, every_s: float, counted_s: float) -> list[float]:
    # Means as of slices: over `counted_s` at the end of each `every_s` of the last day.
    now = time.time()
    words = {
        "query": f"avg_over_time(({query})[{max(1, round(counted_s))}s:1s])",
        "start": f"{now - min(_DAY_S, _MOST_SLICES * every_s):.3f}",
        "end": f"{now:.3f}",
        "step": f"{every_s:g}",
    }
    try:
        data = json.loads(page(f"{api}/query_range?{urlencode(words)}", PAST_SECONDS))["data"]
        return [float(value) for _, value in _only(data["result"])["values"]]
    except (ValueError, KeyError, TypeError, IndexError):
        raise _other() from None


def _only(result: Any) -> Any:
    if len(result) != 1:
        raise NothingShownError(f"the query has {len(result)} results; expected one")
    return result[0]


def _other() -> NothingShownError:
    return NothingShownError("the answer is not that of Prometheus' HTTP API")
