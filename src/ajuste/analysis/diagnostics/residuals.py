"""Residuals: a metric without the means of the configurations, in the order of running."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtr, stdtr, stdtrit

from ajuste.analysis.pairs import Clean
from ajuste.analysis.summary import FAR, MAD_SCALE, distances_from_median, far_places, median
from ajuste.model.metric import Metric, Scale
from ajuste.model.results import Kind
from ajuste.model.wording import change, count_of

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Relative to the values: residuals smaller than this are rounding errors of the computer, not noise.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Residuals:
    """Residuals trial by trial in the order of running; of the logarithm where ``scale`` is *ratio*.

    ``configuration`` is the place in ``names``, ``block`` counts the blocks that have any from 0, ``position`` is the
    place in the block.
    """

    metric: Metric
    scale: Scale
    names: tuple[str, ...]
    values: Floats
    configuration: Whole
    block: Whole
    position: Whole
    numbers: Whole

    def __len__(self) -> int:
        return len(self.values)

    @property
    def blocks(self) -> int:
        return len(self.numbers)

    @cached_property
    def each_block(self) -> Floats:
        """Return how many trials each block has."""
        return np.bincount(self.block, minlength=self.blocks).astype(np.float64)

    @cached_property
    def block_averages(self) -> Floats:
        """Return the mean residual of every block."""
        return np.bincount(self.block, self.values, minlength=self.blocks) / self.each_block

    @cached_property
    def by_configuration(self) -> list[Floats]:
        """Return the residuals of each configuration, in the order of running."""
        order = np.argsort(self.configuration, kind="stable")
        bounds = np.searchsorted(self.configuration[order], np.arange(1, len(self.names)))
        return np.split(self.values[order], bounds)

    @cached_property
    def from_median(self) -> list[Floats]:
        """Return how far each of ``by_configuration`` is from its configuration's median."""
        return [distances_from_median(group) for group in self.by_configuration]

    @cached_property
    def far(self) -> list[list[int]]:
        """Return the outliers' places in ``by_configuration``; none where values are few or mostly alike."""
        if min(map(len, self.from_median)) < FEWEST_OF_EACH:
            return [[] for _ in self.names]
        # Of many configurations with few values some have a small spread by chance: an outlier is far by that of all.
        usual = MAD_SCALE * median(np.concatenate(self.from_median))
        return [[place for place in far_places(away) if away[place] > FAR * usual] for away in self.from_median]

    @property
    def sd(self) -> float:
        """Return the standard deviation of a single trial, drift included."""
        return float(np.sqrt(np.sum(self.values**2) / max(1, len(self) - len(self.names))))

    @property
    def vary(self) -> bool:
        """Return whether there is any noise at all."""
        return len(self) > len(self.names) and float(np.ptp(self.values)) > 0

    def say(self, amount: float) -> str:
        """Return an amount on the residuals' scale for people: ``+2 %``, or in the metric's unit."""
        natural = float(np.exp(amount)) if self.scale == "ratio" else amount
        return change(natural, self.scale, self.metric.unit)


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
    values = column[rows]
    scale: Scale = "ratio" if metric.scale == "ratio" and bool(np.all(values > 0)) else "difference"
    values = np.log(values) if scale == "ratio" else values
    codes, configuration = _numbered(measured.configuration.codes[rows])
    numbers, block = _numbered(np.searchsorted(clean.blocks, measured.block[rows]))
    averages = np.bincount(configuration, values) / np.bincount(configuration)
    residuals = values - averages[configuration]
    residuals[np.abs(residuals) <= _ROUNDING * (1.0 if scale == "ratio" else np.abs(averages[configuration]))] = 0.0
    return Residuals(
        metric=metric,
        scale=scale,
        names=tuple(measured.configuration.values[code] for code in codes),
        values=residuals,
        configuration=configuration,
        block=block,
        position=measured.position[rows],
        numbers=clean.blocks[numbers],
    )


def _numbered(codes: NDArray[Any]) -> tuple[Whole, Whole]:
    # Return the codes that occur and the place of each: `numpy.unique` without sorting a million.
    there = np.bincount(codes) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]


FEWEST_OF_EACH: Final = 5
"""Fewer values of a configuration have no outliers."""


def outlier_notes(clean: Clean, metrics: Sequence[Metric]) -> list[str]:
    """Return a sentence for each of ``metrics`` and configuration with outliers among its clean trials."""
    every = (compute_residuals(clean, metric) for metric in metrics)
    return [note for residuals in every if residuals is not None for note in _outlier_notes(residuals)]


def _outlier_notes(residuals: Residuals) -> Iterator[str]:
    for place, far in enumerate(residuals.far):
        if far:
            blocks = residuals.numbers[residuals.block[residuals.configuration == place][far]]
            named = ", ".join(str(block) for block in blocks[:MOST_NAMED])
            which = f"in {'block' if len(far) == 1 else 'blocks'} {named}{' …' if len(far) > MOST_NAMED else ''}"
            values = int(np.sum(residuals.configuration == place))
            yield (
                f"{residuals.metric.name} under {residuals.names[place]}: {count_of(len(far), 'outlier')} in "
                f"{values:,} values ({which}); {'it stays' if len(far) == 1 else 'they stay'} in every figure."
            )


MOST_NAMED: Final = 5
"""Blocks that a note names."""


@dataclass(frozen=True)
class DiagnosticFinding:
    """The result of one diagnostic on one metric, as in ``model.results.Diagnostic``, before all are weighed together.

    Without a ``p_value`` ``certain`` says whether it is there. ``spoils``: worth knowing even where it misleads no
    test.
    """

    kind: Kind
    measures: str
    value: float
    says: str
    why: str
    p_value: float | None = None
    certain: bool = False
    naive_error: float | None = None
    configuration: str = ""
    verdict_affected: bool = False
    spoils: bool = False


# The functions error_… give the error rate of the naive comparison, a two-sided t test at 5 % of two equal
# configurations, each measured BATCH times in a row: 5 % if the values are independent and normal.
BATCH: Final = 10
LEVEL: Final = 0.05
HARM: Final = 0.06
"""From this error rate on a defect counts as harmful: a fifth more than promised."""
_CRITICAL: Final = stdtrit(2 * BATCH - 2, 1 - LEVEL / 2)
_DRAWS: Final = 2_000
_MOST_WINDOWS: Final = 5_000


def error_of_bias(bias: float, sd: float) -> float:
    """If one batch is ``bias`` above the other, with standard deviation ``sd`` within each: the noncentral t."""
    if sd <= 0:
        return 1.0 if bias else LEVEL
    shift = abs(bias) / (sd * math.sqrt(2 / BATCH))
    if shift > 30:
        return 1.0
    freedom = 2 * BATCH - 2
    return float(1 - nctdtr(freedom, shift, _CRITICAL) + nctdtr(freedom, shift, -_CRITICAL))


def error_of_trend(slope: float, sd: float) -> float:
    """If the level rises by ``slope`` from trial to trial: it moves the batches apart and widens each."""
    within = math.sqrt(sd**2 + slope**2 * (BATCH**2 - 1) / 12)
    return error_of_bias(slope * BATCH, within)


def error_of_autocorrelation(rho: float) -> float:
    """If each trial resembles the one before it by ``rho`` (first-order autoregression).

    The variance of the difference of means over what the formula claims, from the correlation matrix of the 2n trials;
    the t statistic is wider by its root.
    """
    return float(2 * stdtr(2 * BATCH - 2, -_CRITICAL / math.sqrt(inflation(rho))))


def inflation(rho: float) -> float:
    """Return the true variance of the difference of two batches' means over the mean of s₁²/n + s₂²/n."""
    places = np.arange(2 * BATCH)
    correlation = rho ** np.abs(places[:, None] - places[None, :]).astype(float)
    weights = np.where(places < BATCH, 1, -1) / BATCH
    true = float(weights @ correlation @ weights)
    batch = correlation[:BATCH, :BATCH]
    claimed = 2 * (BATCH - float(batch.mean()) * BATCH) / (BATCH - 1) / BATCH
    return true / claimed


def error_of_unequal_spread(ratio: float) -> float:
    """If one standard deviation is ``ratio`` times the other, in Student's test with a pooled variance.

    With equal sizes its statistic has fewer degrees of freedom than the test assumes (Satterthwaite 1946).
    """
    q = ratio**2
    freedom = (BATCH - 1) * (1 + q) ** 2 / (1 + q**2)
    return float(2 * stdtr(freedom, -_CRITICAL))


def error_of_shape(values: Floats) -> float:
    """Two batches drawn at random from ``values``: the effect of their shape alone, without any order (a bootstrap)."""
    drawn = np.random.default_rng(1).choice(values - np.mean(values), (2, _DRAWS, BATCH))
    return float(np.mean(_significant(drawn[0], drawn[1])))


def error_in(series: Floats) -> tuple[float, int]:
    """Return the error rate over all pieces of 2 × ``BATCH`` trials in the order of running, and their number."""
    windows = np.lib.stride_tricks.sliding_window_view(series, 2 * BATCH)
    windows = windows[:: max(1, len(windows) // _MOST_WINDOWS)]
    return float(np.mean(_significant(windows[:, :BATCH], windows[:, BATCH:]))), len(windows)


def _significant(batches: Floats, other_batches: Floats) -> NDArray[np.bool_]:
    first, second = batches.var(axis=1, ddof=1) / BATCH, other_batches.var(axis=1, ddof=1) / BATCH
    both = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(batches.mean(axis=1) - other_batches.mean(axis=1)) / np.sqrt(both)
        freedom = both**2 / ((first**2 + second**2) / (BATCH - 1))
        significant = statistic > stdtrit(freedom, 1 - LEVEL / 2)
    return np.asarray(np.where(both > 0, significant, batches.mean(axis=1) != other_batches.mean(axis=1)))
