"""``prometheus:URL#SERIES``, or ``URL#SERIES{label="value"}``: an endpoint in Prometheus' text format.

A counter becomes its rate, a summary or histogram the mean of its events, with ``@p99`` a quantile; a gauge its mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.model.metric import split_percentile
from ajuste_live.reading import (
    Figures,
    Fold,
    NothingShownError,
    Source,
    level,
    mean_of_events,
    page,
    quantile_of_buckets,
    rate,
    require_web,
)

KIND: Final = "prometheus"

_SERIES: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?", re.DOTALL)
_LABEL: Final = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_OF_COUNTERS: Final = ("_total", "_sum", "_count", "_bucket")


@dataclass(frozen=True)
class Series:
    """A series ``name{labels}``, or a quantile of it."""

    name: str
    labels: Mapping[str, str]
    quantile: float | None = None


def open_source(where: str) -> Source:
    """Open the series after the ``#`` of the URL. Raises RequestError."""
    url, hash_, text = where.partition("#")
    require_web(url)
    if not hash_ or not text:
        raise RequestError("the series is missing; expected URL#SERIES", hint=f"write {url}#demo_latency_seconds")
    series = parse_series(text)
    try:
        families = _families(url)
    except NothingShownError as nothing:
        raise RequestError(str(nothing), hint="check that the endpoint is up: curl " + url) from None
    pick, fold = chosen(series, families)
    return Source(url, lambda: pick(_families(url)), fold)


def parse_series(text: str) -> Series:
    """Parse ``NAME`` or ``NAME{label="value"}``, with an optional ``@p99``. Raises RequestError."""
    body, quantile = split_percentile(text.strip())
    match = _SERIES.fullmatch(body)
    labels: dict[str, str] = {}
    rest = (match[2] or "") if match else "?"
    while rest.strip():
        label = _LABEL.match(rest)
        if label is None:
            raise RequestError(
                f'{text!r} is not a series; expected NAME or NAME{{label="value"}}', hint="add @p99 for a quantile"
            )
        labels[label[1]] = re.sub(r"\\(.)", r"\1", label[2])
        rest = rest[label.end() :]
    assert match is not None
    return Series(match[1], labels, quantile)


def _families(url: str) -> list[Family]:
    text = page(url).decode(errors="replace")
    if not text.endswith("\n"):  # Prometheus' exposition formats require it; the last line may be cut off.
        raise NothingShownError(f"{url} is not in Prometheus' text format, or breaks off: its last line has no end")
    try:
        return list(text_string_to_metric_families(text))
    except (ValueError, KeyError, IndexError) as error:
        raise NothingShownError(f"{url} is not in Prometheus' text format: {error}") from None


Pick = Callable[[Sequence[Family]], Figures]


def chosen(series: Series, families: Sequence[Family]) -> tuple[Pick, Fold]:
    """Return the functions that read the series from a page and make a figure. Raises RequestError if it is missing."""
    samples = [sample for family in families for sample in family.samples]
    family = next(
        (candidate for candidate in families if series.name in (candidate.name, f"{candidate.name}_total")), None
    )
    kind = family.type if family is not None else ""
    if kind in ("summary", "histogram"):
        assert family is not None
        return _distribution(series, kind, samples)
    if series.quantile is not None:
        raise RequestError(
            f"{series.name} is a {kind or 'series'}, which has no quantiles", hint="remove the @p, or name a histogram"
        )
    name = f"{series.name}_total" if kind == "counter" and not series.name.endswith("_total") else series.name
    grows = kind == "counter" or (kind != "gauge" and name.endswith(_OF_COUNTERS))
    matches = [sample for sample in samples if _is(sample, name, series.labels)]
    _require(matches, series, samples)
    if len(matches) > 1 and not grows:
        raise RequestError(
            f"{series.name} stands for {len(matches)} series; expected one",
            hint="choose it by its labels, such as " + _words(matches[0]),
        )
    return (lambda now: (_sum(now, name, series.labels),)), rate if grows else level


def _distribution(series: Series, kind: str, samples: Sequence[Sample]) -> tuple[Pick, Fold]:
    name, labels = series.name, series.labels
    if series.quantile is None:
        _require([sample for sample in samples if _is(sample, f"{name}_count", labels)], series, samples)
        parts = (f"{name}_sum", f"{name}_count")
        return (lambda now: tuple(_sum(now, part, labels) for part in parts)), mean_of_events
    if kind == "summary":
        quantiles = [sample for sample in samples if _is(sample, name, labels) and "quantile" in sample.labels]
        wanted = [sample for sample in quantiles if float(sample.labels["quantile"]) == series.quantile]
        if len(wanted) != 1:
            there = sorted({sample.labels["quantile"] for sample in quantiles})
            raise RequestError(
                f"the summary {name} shows {len(wanted)} series for the quantile {series.quantile}; expected one",
                hint=f"choose one of {', '.join(there)}"
                if there
                else "omit the @p for the mean; it shows no quantiles",
            )
        exact = dict(wanted[0].labels)
        return (lambda now: (_sum(now, name, exact),)), level
    bounds = sorted({float(sample.labels["le"]) for sample in samples if _is(sample, f"{name}_bucket", labels)})
    if not bounds:
        _require([], series, samples)
    return (lambda now: _buckets(now, f"{name}_bucket", labels, bounds)), quantile_of_buckets(series.quantile, bounds)


def _buckets(now: Sequence[Family], name: str, labels: Mapping[str, str], bounds: Sequence[float]) -> Figures:
    counts = dict.fromkeys(bounds, 0.0)
    for family in now:
        for sample in family.samples:
            if _is(sample, name, labels):
                bound = float(sample.labels.get("le", "nan"))
                if bound not in counts:
                    raise NothingShownError(f"{name} has other buckets than before")
                counts[bound] += sample.value
    return tuple(counts.values())


def _sum(now: Sequence[Family], name: str, labels: Mapping[str, str]) -> float:
    values = [sample.value for family in now for sample in family.samples if _is(sample, name, labels)]
    if not values:
        raise NothingShownError(f"{name} is not shown any more")
    total = sum(values)
    if not math.isfinite(total):
        raise NothingShownError(f"{name} is {total}")
    return total


def _is(sample: Sample, name: str, labels: Mapping[str, str]) -> bool:
    return sample.name == name and all(sample.labels.get(key) == value for key, value in labels.items())


def _require(matches: Sequence[Sample], series: Series, samples: Sequence[Sample]) -> None:
    if matches:
        return
    alike = [_words(sample) for sample in samples if sample.name == series.name]
    names = list(dict.fromkeys(sample.name for sample in samples))
    near = did_you_mean(nearest_names(series.name, names, most=3))
    raise RequestError(
        f"series {series.name} not found on the page" if not alike else f"{series.name} has no series of these labels",
        hint=f"choose one of {', '.join(alike[:3])}"
        if alike
        else near or f"see the page, which has {len(names)} others",
    )


def _words(sample: Sample) -> str:
    labels = ",".join(f'{key}="{value}"' for key, value in sample.labels.items())
    return f"{sample.name}{{{labels}}}" if labels else sample.name
