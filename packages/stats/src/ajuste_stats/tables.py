"""Many treatments at once: a ranking, and a diagnosis of the noise of all measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ajuste_stats.comparison import check_shares, numbers
from ajuste_stats.diagnostics import ALARMS, Finding, Naive, findings, naive, significant
from ajuste_stats.multiplicity import bonferroni
from ajuste_stats.pairs import Pairs
from ajuste_stats.ranking import Ranking, rank_pairs
from ajuste_stats.residuals import compute_residuals
from ajuste_stats.terms import Direction, Measure, Scale


def rank(
    values: Mapping[str, ArrayLike],
    *,
    direction: Direction,
    baseline: str | None = None,
    positions: Mapping[str, ArrayLike] | None = None,
    smallest_effect: float = 0.05,
    scale: Scale = "ratio",
    resolution: float = 0.0,
    confidence: float = 0.95,
) -> Ranking | None:
    """Rank three treatments or more by their ``values`` in the same blocks; it may be asked for after every block.

    ``values`` has a sequence for each treatment, by its name: a number for each block, NaN where there is none.
    ``positions`` says in the same way when in its block each was measured; give it for what was measured in time. The
    ``contenders`` of the ranking have the truly best treatment with probability at least ``confidence``, at all looks
    together. ``baseline`` is the first unless named. ``None`` where some two were never measured in one block, or where
    each is worse than another, so that some interval is wrong. Other arguments are those of ``compare``.

    Raises ValueError for fewer than three treatments, sequences of unequal length, and a direction of *none*.
    """
    check_shares(confidence=confidence, smallest_effect=smallest_effect)
    table = {name: np.asarray(row, np.float64) for name, row in values.items()}
    names = list(table)
    if len(names) < 3:
        raise ValueError(f"{len(names)} treatments; expected at least 3 (compare judges two)")
    if len({row.shape for row in table.values()}) != 1 or table[names[0]].ndim != 1:
        raise ValueError("the treatments have unequal numbers of blocks; expected NaN where a value is missing")
    if direction == "none":
        raise ValueError("direction is none; expected lower or higher, since nothing else is better")
    reference = names[0] if baseline is None else baseline
    if reference not in table:
        raise ValueError(f"baseline is {reference!r}; expected one of {', '.join(map(repr, names))}")
    order = None if positions is None else {name: np.asarray(positions[name]) for name in names}

    def pairs_of(first: str, other: str) -> Pairs:
        both = np.isfinite(table[first]) & np.isfinite(table[other])
        earlier = None if order is None else (order[first] < order[other])[both]
        return Pairs(table[first][both], table[other][both], earlier)

    quantity = Measure(direction, scale, resolution)
    ordered = [reference, *(name for name in names if name != reference)]
    measured = [name for name in ordered if np.any(np.isfinite(table[name]))]
    return rank_pairs(measured, reference, pairs_of, quantity, bonferroni(confidence, len(names) - 1), smallest_effect)


@dataclass(frozen=True)
class Diagnosed:
    """A ``finding``, and whether it is ``present`` at the error rate of all together; if so, whether it ``matters``."""

    finding: Finding
    present: bool

    @property
    def matters(self) -> bool:
        """Return whether it misleads a naive comparison, or the verdicts themselves."""
        return self.finding.matters(significant=self.present)


@dataclass(frozen=True)
class Diagnosis:
    """The ``findings`` of every diagnostic that had enough values, and how a ``naive`` comparison would have fared."""

    findings: tuple[Diagnosed, ...]
    naive: Naive | None

    @property
    def present(self) -> tuple[Finding, ...]:
        """Return the findings that are there."""
        return tuple(diagnosed.finding for diagnosed in self.findings if diagnosed.present)


def diagnose(
    values: ArrayLike,
    treatments: Sequence[str],
    blocks: ArrayLike,
    *,
    smallest_effect: float = 0.05,
    scale: Scale = "ratio",
    in_time: bool = True,
    level: float = ALARMS,
    seed: int = 1,
) -> Diagnosis:
    """Diagnose the noise of ``values`` in the order in which they were measured.

    ``treatments`` has the name of each value's treatment, ``blocks`` the number of its block, a whole number from 0 on
    that never falls. On clean data any alarm is raised with probability at most ``level``. Two groups of values count
    if they are ``smallest_effect`` apart, a share of the smallest mean. Without ``in_time`` only the shape of the noise
    is looked at. Logarithms are taken if ``scale`` is *ratio* and all ``values`` are positive. Groups are found only if
    the package ``diptest`` is installed (``ajuste-stats[modes]``). What is drawn at random follows from ``seed``.

    Raises ValueError for sequences of unequal length, values that are no finite numbers, and blocks out of order.
    """
    check_shares(confidence=1 - level, smallest_effect=smallest_effect)
    measured = numbers("values", values)
    numbered = np.asarray(blocks, np.int64)
    if not len(measured) == len(treatments) == len(numbered):
        raise ValueError(
            f"{len(measured)} values, {len(treatments)} treatments and {len(numbered)} blocks; expected as many of each"
        )
    if numbered[0] < 0 or np.any(np.diff(numbered) < 0):
        raise ValueError("blocks are not in the order of running; expected whole numbers from 0 that never fall")
    names, codes = np.unique(np.asarray(treatments, np.str_), return_inverse=True)
    residuals = compute_residuals(
        measured,
        np.asarray(codes, np.int64),
        numbered,
        _places(numbered),
        names=[str(name) for name in names],
        scale=scale,
    )
    if not residuals.vary:
        return Diagnosis((), None)
    averages = np.bincount(codes, measured) / np.bincount(codes)
    share = smallest_effect
    apart_by = math.log1p(share) if residuals.scale == "ratio" else share * np.min(np.abs(averages))
    every = list(findings(residuals, apart_by=float(apart_by), in_time=in_time, seed=seed))
    present = significant(every, level)
    return Diagnosis(
        tuple(Diagnosed(finding, there or finding.certain) for finding, there in zip(every, present, strict=True)),
        naive(residuals) if in_time else None,
    )


def _places(blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    # The place of each value in its block.
    begins = np.r_[0, np.flatnonzero(np.diff(blocks)) + 1]
    return np.asarray(np.arange(len(blocks)) - np.repeat(begins, np.diff(np.r_[begins, len(blocks)])), np.int64)
