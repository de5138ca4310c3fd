"""Residuals of the clean trials of a metric, and the outliers among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ajuste.analysis.pairs import Clean
from ajuste.model.metric import Metric
from ajuste.model.wording import change, count_of
from ajuste_stats import residuals as statistics
from ajuste_stats.residuals import Residuals

MOST_NAMED: Final = 5
"""Blocks that a note names."""


def compute_residuals(clean: Clean, metric: Metric) -> Residuals | None:
    """Return the residuals of all clean trials that have ``metric``; ``None`` if none has."""
    column = clean.measured.metrics.get(metric.name)
    if column is None:
        return None
    rows = clean.rows[clean.rows >= 0]
    rows = rows[~np.isnan(column[rows])]
    if not len(rows):
        return None
    measured = clean.measured
    rows = np.sort(rows)
    if np.any(measured.attempt[rows]):  # What is repeated runs after all others of its block.
        rows = rows[np.lexsort((measured.position[rows], measured.attempt[rows], measured.block[rows]))]
    return statistics.compute_residuals(
        column[rows],
        measured.configuration.codes[rows].astype(np.int64),
        np.searchsorted(clean.blocks, measured.block[rows]),
        measured.position[rows],
        names=measured.configuration.values,
        scale=metric.scale,
        numbers=clean.blocks,
    )


def amount_in_words(amount: float, residuals: Residuals, unit: str) -> str:
    """Return an amount on the residuals' scale for people: ``+2 %``, or in the metric's ``unit``."""
    natural = float(np.exp(amount)) if residuals.scale == "ratio" else amount
    return change(natural, residuals.scale, unit)


def outlier_notes(clean: Clean, metrics: Sequence[Metric]) -> list[str]:
    """Return a sentence for each of ``metrics`` and configuration with outliers among its clean trials."""
    every = ((metric.name, compute_residuals(clean, metric)) for metric in metrics)
    return [note for name, residuals in every if residuals is not None for note in _outlier_notes(name, residuals)]


def _outlier_notes(metric: str, residuals: Residuals) -> Iterator[str]:
    for place, far in enumerate(residuals.far):
        if far:
            blocks = residuals.numbers[residuals.block[residuals.treatment == place][far]]
            named = ", ".join(str(block) for block in blocks[:MOST_NAMED])
            which = f"in {'block' if len(far) == 1 else 'blocks'} {named}{' …' if len(far) > MOST_NAMED else ''}"
            values = int(np.sum(residuals.treatment == place))
            yield (
                f"{metric} under {residuals.names[place]}: {count_of(len(far), 'outlier')} in "
                f"{values:,} values ({which}); {'it stays' if len(far) == 1 else 'they stay'} in every figure."
            )
