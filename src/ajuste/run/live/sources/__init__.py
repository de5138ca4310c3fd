"""Where live metrics are read, one file each: its ``KIND``, and ``open_source(where)``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from types import MappingProxyType

from ajuste.model.error import Place, RequestError, did_you_mean, nearest_names
from ajuste.model.live import LiveDesign, LiveMetric
from ajuste.model.plug_in import modules_of
from ajuste.run.live.source import NothingShownError, Source


@cache
def kinds() -> Mapping[str, Callable[[str], Source]]:
    """What opens a source, by what stands before the colon. Each raises RequestError where nothing can be read."""
    return MappingProxyType({module.KIND: module.open_source for module in modules_of(sys.modules[__name__]).values()})


@contextmanager
def opened(design: LiveDesign) -> Iterator[Mapping[str, Source]]:
    """The sources of all metrics by name, each of which shows something now. Raises RequestError."""
    with ExitStack() as stack:
        found: dict[str, Source] = {}
        for one in design.all_metrics:
            found[one.metric.name] = open_metric(one)
            stack.callback(found[one.metric.name].close)
        yield found


def open_metric(metric: LiveMetric) -> Source:
    """The source of ``metric``, which shows something now. Raises RequestError."""
    place, known = Place(f"metric {metric.metric.name}"), kinds()
    if metric.kind not in known:
        raise RequestError(
            f"{metric.kind!r} is not a source; expected one of {', '.join(known)}",
            hint=did_you_mean(nearest_names(metric.kind, known)) or "see docs/how-to/live.md for examples",
            place=place,
        )
    try:
        source = known[metric.kind](metric.where)
    except RequestError as failure:
        raise RequestError(failure.message, hint=failure.hint, place=place) from None
    try:
        source.read()
    except NothingShownError as nothing:
        source.close()
        hint = "check that the service runs and shows this metric"
        raise RequestError(str(nothing), hint=hint, place=place) from None
    return source
