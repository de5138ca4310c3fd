"""A metric over the versions of a kernel or a project, and between which of them it changed.

Optimal partitioning as in ``ajuste_stats.regions``, into stretches in which a metric stays the same: versions are
no numbers, with no slope between them. A further stretch costs as much as noise alone would gain by one with
the error rate asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from ajuste.analysis.block_values import Promise, measured_points, surface_margin, tabulate_blocks
from ajuste.analysis.pairs import Clean
from ajuste.model.history import History, VersionChange, VersionPoint
from ajuste.model.kernel import KernelVersion
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor
from ajuste_stats.block_tables import Blocks
from ajuste_stats.change_points import stretches

FEWEST_VERSIONS: Final = 3
MOST_LINES: Final = 6
"""Flavours and combinations of other factors' levels that have their own histories."""

_SPEC: Final = re.compile(r"[a-z]+:(\d+\.\d+)(?:\.\d+)?(?:/([a-z]+))?")


class _Named(NamedTuple):
    # The version in a level; `place` is its rank among all.
    version: str
    place: tuple[int, int]
    flavour: str = ""
    scheduler: str = ""


class _Line(NamedTuple):
    # Configurations in the order of their versions, which are levels of `factor`.
    factor: str
    flavour: str
    fixed: dict[str, str]
    configurations: tuple[Configuration, ...]


def histories(
    factors: Sequence[Factor],
    configurations: Sequence[Configuration],
    clean: Clean,
    deciding: Sequence[Metric],
    promise: Promise,
) -> tuple[History, ...]:
    """Return a history of each deciding metric per flavour and combination of the other factors' levels.

    Empty unless a factor is ordered by versions or the kernel's levels name versions.
    """
    factor = next((factor for factor in factors if factor.has_versions), None)
    if factor is None:
        return ()
    named = _named(factor)
    lines = list(_lines(factor.name, named, configurations))
    if not 0 < len(lines) <= MOST_LINES:
        return ()
    alpha = (1 - promise.confidence) / (len(lines) * max(1, len(deciding)))
    made = (_history(line, named, clean, metric, promise, alpha) for metric in deciding for line in lines)
    return tuple(history for history in made if history is not None)


def _named(factor: Factor) -> dict[str, _Named]:
    if factor.in_order:
        return {level: _Named(level, (place, 0)) for place, level in enumerate(factor.levels)}
    kernels = {level: match for level in factor.levels if (match := _SPEC.fullmatch(level))}
    versions = {level: (KernelVersion.parse(match[1]), match[2] or "") for level, match in kernels.items()}
    return {
        level: _Named(str(version), (version.major, version.minor), flavour, version.scheduler)
        for level, (version, flavour) in versions.items()
    }


def _lines(factor: str, named: Mapping[str, _Named], configurations: Sequence[Configuration]) -> Iterator[_Line]:
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Configuration]] = {}
    for configuration in sorted(configurations, key=lambda c: not c.baseline):
        if (level := configuration.levels.get(factor, "")) in named:
            fixed = tuple((name, other) for name, other in configuration.levels.items() if name != factor)
            groups.setdefault((named[level].flavour, fixed), []).append(configuration)
    varied = {pair for _, fixed in groups for pair in fixed if any(pair not in other for _, other in groups)}
    for (flavour, fixed), group in groups.items():
        in_order = sorted(group, key=lambda c: named[c.levels[factor]].place)
        if len({named[c.levels[factor]].version for c in group}) >= FEWEST_VERSIONS:
            others = {name: level for name, level in fixed if (name, level) in varied}
            yield _Line(factor, flavour, others, tuple(in_order))


def _history(
    line: _Line, named: Mapping[str, _Named], clean: Clean, metric: Metric, promise: Promise, alpha: float
) -> History | None:
    blocks = tabulate_blocks(clean, [c.name for c in line.configurations], metric, order_matters=promise.order_matters)
    if blocks is None or len(blocks.names) < FEWEST_VERSIONS:
        return None
    level_by_name = {c.name: c.levels[line.factor] for c in line.configurations}
    baseline = next((c.name for c in line.configurations if c.baseline), blocks.names[0])
    place = blocks.names.index(baseline) if baseline in blocks.names else 0
    reference = float(np.mean(clean.values(blocks.names[place], metric.column)))
    points = tuple(
        VersionPoint(
            configuration=point.configuration,
            level=(level := level_by_name[point.configuration]),
            version=named[level].version,
            scheduler=named[level].scheduler,
            value=point.value,
            low=point.low,
            high=point.high,
        )
        for point in measured_points(blocks, place, reference, alpha)
    )
    starts = stretches(blocks, alpha, surface_margin(blocks, reference, promise))
    return History(
        metric=metric.name,
        scale=blocks.scale,
        factor=line.factor,
        flavour=line.flavour,
        fixed=line.fixed,
        points=points,
        changes=tuple(_changes(points, blocks, starts or [0])),
        known=starts is not None,
        level=promise.confidence,
        blocks=blocks.values.shape[1],
    )


def _changes(points: Sequence[VersionPoint], blocks: Blocks, starts: Sequence[int]) -> Iterator[VersionChange]:
    bounds = [*starts, len(points)]
    averages = [float(np.mean(blocks.levels[start:end])) for start, end in pairwise(bounds)]
    for start, (before, after) in zip(starts[1:], pairwise(averages), strict=True):
        change = after - before
        yield VersionChange(
            before=points[start - 1].version,
            after=points[start].version,
            change=math.exp(change) if blocks.scale == "ratio" else change,
        )
