"""What is measured in a study: its metrics, and what must be asked for to have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.metric import Metric, split_percentile
from ajuste.parse.base import counters_for
from ajuste.parse.pattern import Pattern
from ajuste.parse.pointer import Pointer
from ajuste.study.job import PatternTable
from ajuste.study.problem import nearest
from ajuste.study.schema import Study
from ajuste.study.shares import share_metrics, wants_shares
from ajuste.study.timelines import timeline_metrics


@dataclass(frozen=True)
class Measures:
    """See ``ResolvedStudy`` for what each is."""

    deciding: tuple[Metric, ...]
    described: tuple[Metric, ...]
    counters: tuple[str, ...]
    parser: str
    patterns: tuple[Pattern, ...]
    pointers: tuple[Pointer, ...]


def measures(study: Study, catalogue: Catalogue) -> Measures:
    """The metrics of ``study``: those of the command's own, of the workload's kind, and those that every trial has."""
    kind = catalogue.workloads.get(study.workload.kind or "")
    known = _known(study, catalogue)
    deciding = tuple(_named(name, known) for name in study.analysis.metrics)
    names = study.analysis.describe
    described = tuple(
        _named(name, known) for name in (known if names is None else names) if name not in study.analysis.metrics
    )
    return Measures(
        deciding=deciding,
        described=described,
        counters=counters_for([metric.column for metric in (*deciding, *described)]),
        parser=kind.parser if kind else "",
        patterns=tuple(
            Pattern(metric=m.name, pattern=m.pattern, stream=m.stream)
            for m in study.workload.metrics
            if m.pattern is not None
        ),
        pointers=tuple(
            Pointer(metric=m.name, pointer=m.pointer, stream=m.stream)
            for m in study.workload.metrics
            if m.pointer is not None
        ),
    )


def find_metric(name: str, study: Study, catalogue: Catalogue) -> Metric:
    """The metric of that name, which may be a percentile. Raises RequestError for one that ``study`` has not."""
    known = _known(study, catalogue)
    if name not in known and split_percentile(name)[0] not in known:
        near = nearest(name, list(known)) or f"; expected one of {', '.join(known)}"
        raise RequestError(f'there is no metric "{name}"{near}')
    return _named(name, known)


def _known(study: Study, catalogue: Catalogue) -> dict[str, Metric]:
    kind = catalogue.workloads.get(study.workload.kind or "")
    return {
        metric.name: metric
        for metric in (
            *map(own_metric, study.workload.metrics),
            *timeline_metrics(study),
            *(kind.metrics if kind else ()),
            *catalogue.metrics.values(),
            *(share_metrics(study) if wants_shares(study) else ()),
        )
    }


def _named(name: str, known: Mapping[str, Metric]) -> Metric:
    """A metric, or a percentile of one as ``elapsed@p95``."""
    column, quantile = split_percentile(name)
    return known[name] if name in known or quantile is None else known[column].at(quantile)


def own_metric(table: PatternTable) -> Metric:
    """A metric of a command of one's own."""
    return Metric(
        name=table.name,
        title=table.title or table.name,
        unit=table.unit,
        direction=table.direction,
        scale=table.scale,
        resolution=table.resolution,
        what=f"read from the command's {table.stream} "
        + (f"by the pattern {table.pattern}" if table.pattern is not None else f"at {table.pointer}"),
    )
