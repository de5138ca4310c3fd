"""Single values that are far from all others.

The modified z-score: the distance from the median in units of the median absolute deviation, scaled so that for normal
values the unit is a standard deviation (Iglewicz and Hoaglin 1993, "How to Detect and Handle Outliers").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.model.metric import Metric

MAD_SCALE: Final = 1.4826
"""1/Φ⁻¹(3/4): for normal values the standard deviation is so many median absolute deviations."""

FAR: Final = 10.0
"""From here on a value is told; hyperfine has the same threshold. The book's 3.5 would tell of one run in a hundred
of every skewed, undisturbed benchmark."""

FEWEST: Final = 5


def outliers(values: Sequence[float] | NDArray[np.float64]) -> list[int]:
    """The places of the outliers in ``values``. None where there are few values or most are alike."""
    if len(values) < FEWEST:
        return []
    return far_places(distances_from_median(np.asarray(values, dtype=np.float64)))


def distances_from_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each is from the median of all."""
    return np.abs(values - median(values))


def far_places(distances: NDArray[np.float64]) -> list[int]:
    """The places of the outliers, by the distances from the median."""
    unit = MAD_SCALE * median(distances)
    if unit == 0:
        return []
    return [int(place) for place in np.flatnonzero(distances > FAR * unit)]


def median(values: NDArray[np.float64]) -> float:
    """As ``numpy.median``, which takes several times as long: of one or more values, none of them NaN."""
    upper = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, upper)[upper])
    parted = np.partition(values, (upper - 1, upper))
    return float((parted[upper - 1] + parted[upper]) / 2)


def outlier_notes(trials: Trials, metrics: Sequence[Metric]) -> list[str]:
    """A sentence for each of ``metrics`` and configuration that has outliers among its clean trials."""
    clean = clean_trials(trials)
    notes = []
    for metric in metrics:
        column = clean.measured.metrics.get(metric.name)
        if column is None:
            continue
        for configuration in clean.measured.configuration.values:
            rows = clean.of(configuration)
            rows = rows[~np.isnan(column[rows])]
            far = outliers(column[rows])
            if far:
                blocks = [int(block) for block in clean.measured.block[rows[far]]]
                notes.append(_note(metric.name, configuration, len(rows), blocks))
    return notes


def _note(metric: str, configuration: str, runs: int, blocks: Sequence[int]) -> str:
    which = f"in block {blocks[0]}" if len(blocks) == 1 else f"in blocks {', '.join(map(str, blocks[:5]))}"
    more = " …" if len(blocks) > 5 else ""
    are = "is" if len(blocks) == 1 else "are"
    return (
        f"{metric} under {configuration}: {len(blocks)} of {runs} values {are} far from all others ({which}{more}). "
        f"Something else may have disturbed the machine; they stay in every figure."
    )
