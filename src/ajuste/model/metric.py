"""Metrics: what is measured of a trial, and which direction is better."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from typing import Final, Literal, Self

from pydantic import ConfigDict, Field

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.plan import SamplerSource
from ajuste_stats.terms import Direction, Scale

_PERCENTILE: Final = re.compile(r"(.+)@p(\d{1,2}(?:\.\d{1,3})?)", re.ASCII)


class Metric(ClosedModel):
    """A metric of a trial; ``scale`` is how configurations are compared: ratios for what is always positive,
    differences for what can be 0.

    ``resolution`` is the smallest step the figure can take (1 for a count), in ``unit``: values that are all alike are
    known no better than that. With a ``quantile`` that quantile of the trials' values is compared, not their mean, and
    the name is that of the metric with ``@p95`` or the like after it. ``cpu_time``: a time on the CPU, or a rate by it,
    in which no waiting shows, so that other metrics come first.
    """

    name: str
    title: str
    unit: str = ""
    direction: Direction
    scale: Scale = "ratio"
    resolution: float = 0.0
    what: str = ""
    quantile: float | None = Field(default=None, gt=0, lt=1)
    cpu_time: bool = Field(default=False, exclude_if=lambda cpu_time: not cpu_time)

    @property
    def column(self) -> str:
        """Return the name under which trials have its values."""
        return self.name if self.quantile is None else split_percentile(self.name)[0]

    def at(self, quantile: float) -> Self:
        """Return that quantile of this metric as a metric."""
        percent = f"{100 * quantile:.6g}"
        return self.model_copy(
            update={
                "name": f"{self.name}@p{percent}",
                "title": f"{self.title}, {percent} % quantile of the trials",
                "quantile": quantile,
            }
        )


def split_percentile(name: str) -> tuple[str, float | None]:
    """Return ``elapsed@p95`` as ``elapsed`` and 0.95; any other name as it is, and ``None``."""
    match = _PERCENTILE.fullmatch(name)
    quantile = round(float(match[2]) / 100, 5) if match else 0.0
    return (match[1], quantile) if match and quantile > 0 else (name, None)


# Families: metrics that are alike, described once.


MetricFamily = tuple[str, ...] | dict[str, str | dict[str, str]]
"""Members by how names have them, each with its text, or with several words by name."""

_WORD: Final = re.compile(r"\{([a-z]+)(?:\.([a-z]+))?\}")


def expand_families(metrics: Iterable[Metric], each: Mapping[str, MetricFamily]) -> Iterator[Metric]:
    """Yield a metric for every member of the families in a name: ``latency-{quantile}`` as ``latency-p50``, ….

    In title and ``what``, ``{quantile}`` is the member's text (without one, the member) and ``{quantile.share}`` its
    word ``share``; they begin with a capital letter. Consecutive metrics of a family are repeated together. Raises
    ValueError for an unknown family or word.
    """
    for family, alike in groupby(metrics, key=_first_family):
        if family is None:
            yield from alike
        elif family not in each:
            raise ValueError(f"the family {{{family}}} is not among {', '.join(each) or 'those of each: it has none'}")
        else:
            together = list(alike)
            for member in each[family]:
                yield from expand_families((_member(metric, family, member, each[family]) for metric in together), each)


def _first_family(metric: Metric) -> str | None:
    match = _WORD.search(metric.name)
    return match[1] if match else None


def _member(metric: Metric, family: str, member: str, members: MetricFamily) -> Metric:
    meaning = members[member] if isinstance(members, dict) else member

    def word(match: re.Match[str]) -> str:
        if match[1] != family:
            return match[0]
        if match[2] is None:
            return meaning if isinstance(meaning, str) else member
        if isinstance(meaning, str) or match[2] not in meaning:
            raise ValueError(f"{family} {member} has no word {match[2]}")
        return meaning[match[2]]

    name = metric.name.replace(f"{{{family}}}", member)
    texts = {key: _WORD.sub(word, getattr(metric, key)) for key in ("title", "what")}
    return metric.model_copy(
        update={"name": name, **{key: f"{text[:1].upper()}{text[1:]}" for key, text in texts.items()}}
    )


# Figures that samplers read: what each source has, and what it means.


_PLACEHOLDERS = {"{disk}": r".+", "{cpu}": r"cpu\d*", "{line}": r"[^.]+", "{name}": r".+"}


class Figure(ClosedModel):
    """A figure, or all whose names have the same form. A *counter* only grows; a *level* goes up and down."""

    name: str
    kind: Literal["counter", "level"]
    unit: str = ""
    what: str

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(r"(\{[a-z]+\})", self.name)
        return re.compile("".join(_PLACEHOLDERS.get(piece) or re.escape(piece) for piece in pieces))

    def is_called(self, name: str) -> bool:
        """Return whether ``name`` is this figure's, or one of its form."""
        return self._pattern.fullmatch(name) is not None


class FigureSource(BaseModel):
    """A source that a sampler can read: ``figures`` in the order in which a name is looked up."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    name: SamplerSource
    files: tuple[str, ...]
    what: str
    figures: tuple[Figure, ...] = Field(alias="figure", min_length=1)

    def find(self, name: str) -> Figure | None:
        """Return the figure of that name, if the source can have one."""
        return next((figure for figure in self.figures if figure.is_called(name)), None)


class PredictionRule(BaseModel):
    """A rule of the kernel that predicts a metric: ``says`` in a sentence or two, ``source`` in the kernel's tree."""

    name: str
    title: str
    says: str
    source: str
