"""The sources of live metrics, one file each: its ``KIND``, and ``open_source(where)``."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Final, TypeVar

from ajuste.model.error import Place, RequestError, did_you_mean, nearest_names
from ajuste.model.live import LiveDesign, LiveMetric
from ajuste.model.metric import Metric
from ajuste.model.plugins import modules
from ajuste.model.wording import Say, visible_line
from ajuste.outputs.base import parse_unit
from ajuste_live.reading import PAST_SECONDS, Figures, NothingShownError, Reading, Source, level, look_at, rate
from ajuste_live.record import LARGEST, is_computable

T = TypeVar("T")

_PAUSE_SECONDS: Final = 1.0


@cache
def kinds() -> Mapping[str, Callable[[str], Source]]:
    """Return the functions that open a source, by the word before the colon. Each raises RequestError if nothing can be
    read.
    """
    return MappingProxyType(
        {module.KIND: module.open_source for module in modules(sys.modules[__name__], "sources").values()}
    )


@contextmanager
def opened(design: LiveDesign, patience_s: float = 0.0, say: Say = lambda _: None) -> Iterator[Mapping[str, Source]]:
    """Yield the sources of all metrics by name, and say their warnings. Raises RequestError if one shows nothing for
    ``patience_s``.
    """
    deadline = time.monotonic() + patience_s
    with ExitStack() as stack:
        sources: dict[str, Source] = {}
        for metric in design.all_metrics:
            sources[metric.metric.name] = source = _open_until(deadline, metric, say)
            stack.callback(source.close)
            if source.warning:
                say(f"metric {metric.metric.name}: {visible_line(source.warning)}")
        yield sources


def _open_until(deadline: float, metric: LiveMetric, say: Say) -> Source:
    problem = ""
    while True:
        try:
            return open_metric(metric)
        except RequestError as failure:
            if time.monotonic() > deadline:
                raise
            if failure.message != problem:
                problem = failure.message
                say(f"waiting: {visible_line(problem)}")
        time.sleep(_PAUSE_SECONDS)


def _within_time(read: Callable[[], T]) -> T:
    # An endpoint whose headers never end would block for ever.
    answer: Future[T] = Future()

    def answered() -> None:
        try:
            answer.set_result(read())
        except BaseException as failure:  # noqa: BLE001 - raised again by `result`
            answer.set_exception(failure)

    threading.Thread(target=answered, name="source", daemon=True).start()
    try:
        return answer.result(PAST_SECONDS)
    except TimeoutError:
        raise RequestError(
            f"shows nothing within {PAST_SECONDS:g} s", hint="check that the service runs and shows this metric"
        ) from None


def _checked(source: Source, metric: Metric) -> Source:
    # A figure too large to compute with, or a negative time, is no reading.
    is_time = metric.scale == "ratio" and parse_unit(metric.unit).kind == "time"

    def read() -> Figures:
        figures = source.read()
        for value in figures:
            if not is_computable(value):
                raise NothingShownError(f"found {value:g}; expected a number within ±{LARGEST:g}")
            if is_time and value < 0:
                raise NothingShownError(f"found {value:g} {metric.unit}; expected a time of at least 0")
        return figures

    def fold(readings: Sequence[Reading]) -> float | None:
        value = source.fold(readings)
        return value if value is not None and is_computable(value) else None

    return replace(source, read=read, fold=fold)


def _require_unit(source: Source, metric: Metric) -> None:
    # A counter's figure is its growth per second: a counter of bytes does not give bytes.
    unit = parse_unit(metric.unit)
    if source.fold is rate and unit.per is None and unit.kind in ("time", "data"):
        raise RequestError(
            f"a counter becomes a rate, which is not in {metric.unit}; expected {metric.unit}/s",
            hint=f"write {metric.name},{metric.unit}/s, and limits of its guards per second too",
        )


def open_metric(metric: LiveMetric) -> Source:
    """Open the source of ``metric``. Raises RequestError if it shows nothing now."""
    place, known = Place(f"metric {metric.metric.name}"), kinds()
    if metric.kind not in known:
        raise RequestError(
            f"{metric.kind!r} is not a source; expected one of {', '.join(known)}",
            hint=did_you_mean(nearest_names(metric.kind, known)) or "see `ajuste help formats` for examples",
            place=place,
        )
    try:
        source = _within_time(lambda: known[metric.kind](metric.where))
    except RequestError as failure:
        raise failure.at(place) from None
    if metric.counter:
        if source.fold is not level:
            source.close()
            what = f"counter does not apply to {metric.kind}:{metric.where}, whose figure is no level"
            raise RequestError(what, hint="remove the word counter", place=place)
        source = replace(source, fold=rate)
    try:
        _require_unit(source, metric.metric)
    except RequestError as failure:
        source.close()
        raise failure.at(place) from None
    source = _checked(source, metric.metric)
    try:
        _within_time(lambda: look_at(source))
    except NothingShownError as nothing:
        source.close()
        hint = "check that the service runs and shows this metric"
        raise RequestError(str(nothing), hint=hint, place=place) from None
    except RequestError as failure:
        source.close()
        raise failure.at(place) from None
    return source
