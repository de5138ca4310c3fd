"""Diagnostics of the order of running: place in the block, drift, autocorrelation, carry-over, warm-up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, nctdtr, ndtr, stdtr, stdtrit

from ajuste.analysis.pairs import Clean
from ajuste.model.metric import Metric
from ajuste.model.results import Kind
from ajuste.model.wording import change, count_of, number
from ajuste_stats.outliers import FAR, MAD_SCALE, distances_from_median, far_places, median
from ajuste_stats.terms import Scale

# Residuals: a metric without the means of the configurations, in the order of running.


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
"""Least error rate at which a defect counts as harmful: a fifth more than promised."""
_CRITICAL: Final = stdtrit(2 * BATCH - 2, 1 - LEVEL / 2)
_DRAWS: Final = 2_000
_MOST_WINDOWS: Final = 5_000


def error_of_bias(bias: float, sd: float) -> float:
    """Return the error rate if one batch is ``bias`` above the other, with ``sd`` within each: the noncentral t."""
    if sd <= 0:
        return 1.0 if bias else LEVEL
    shift = abs(bias) / (sd * math.sqrt(2 / BATCH))
    if shift > 30:
        return 1.0
    freedom = 2 * BATCH - 2
    return float(1 - nctdtr(freedom, shift, _CRITICAL) + nctdtr(freedom, shift, -_CRITICAL))


def error_of_trend(slope: float, sd: float) -> float:
    """Return the error rate if the level rises by ``slope`` a trial: it moves the batches apart and widens each."""
    within = math.sqrt(sd**2 + slope**2 * (BATCH**2 - 1) / 12)
    return error_of_bias(slope * BATCH, within)


def error_of_autocorrelation(rho: float) -> float:
    """Return the error rate if each trial resembles its predecessor by ``rho`` (first-order autoregression).

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
    """Return the error rate of Student's pooled test if one standard deviation is ``ratio`` times the other.

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


FEWEST_BLOCKS: Final = 8


def order(residuals: Residuals) -> DiagnosticFinding | None:
    """Return the effect of the place in the block; ``None`` with too few blocks that have several.

    The slope over the places within each block is one value a block; a t test on these (blocks are independent of each
    other, the trials of a block need not be).
    """
    slopes = _slopes(residuals)
    if len(slopes) < FEWEST_BLOCKS:
        return None
    slope, spread = float(np.mean(slopes)), float(np.std(slopes, ddof=1))
    if spread == 0:
        return None
    p_value = 2 * stdtr(len(slopes) - 1, -abs(slope) / spread * math.sqrt(len(slopes)))
    last = slope * (float(np.max(residuals.position)) - float(np.min(residuals.position)))
    return DiagnosticFinding(
        kind="order",
        measures="change from the first place of a block to the last",
        value=float(np.expm1(last)) if residuals.scale == "ratio" else last,
        p_value=p_value,
        naive_error=error_of_bias(last, residuals.sd),
        says=f"From the first place in a block to the last the level moves by {residuals.say(last)}.",
        why="The order is drawn again for every block, so no configuration is favoured.",
    )


def _slopes(residuals: Residuals) -> Floats:
    # Return the least-squares slope over the places of each block with at least two trials.
    count = residuals.each_block
    centre = np.bincount(residuals.block, residuals.position, minlength=residuals.blocks) / count
    away = residuals.position - centre[residuals.block]
    squares = np.bincount(residuals.block, away**2, minlength=residuals.blocks)
    products = np.bincount(residuals.block, away * residuals.values, minlength=residuals.blocks)
    return np.asarray(products[squares > 0] / squares[squares > 0])


FEWEST_BLOCKS_FOR_DRIFT: Final = 10
# More blocks than this are averaged in groups: every pair of them is compared.
_MOST: Final = 400


def drift(residuals: Residuals) -> DiagnosticFinding | None:
    """Return whether the level moves in one direction over the run; ``None`` with too few blocks to tell.

    The Mann-Kendall test (Mann 1945, Econometrica 13; Kendall 1975) on the means of the blocks, and the Theil-Sen slope
    (Sen 1968, JASA 63), which single disturbed blocks hardly move.
    """
    if residuals.blocks < FEWEST_BLOCKS_FOR_DRIFT:
        return None
    size = math.ceil(residuals.blocks / _MOST)
    averages = residuals.block_averages[: residuals.blocks // size * size].reshape(-1, size).mean(axis=1)
    p_value, slope = trend_test(averages, np.arange(len(averages), dtype=np.float64) * size)
    total = slope * (residuals.blocks - 1)
    residual = residuals.values - slope * residuals.block
    by_trial = slope / float(np.mean(residuals.each_block))
    return DiagnosticFinding(
        kind="drift",
        measures="change from the first block to the last",
        value=float(np.expm1(total)) if residuals.scale == "ratio" else total,
        p_value=p_value,
        naive_error=error_of_trend(by_trial, float(np.std(residual))),
        says=f"The level moved by {residuals.say(total)} from the first block to the last.",
        why="Comparisons are within blocks, where drift has no time to act.",
    )


def trend_test(values: Floats, places: Floats) -> tuple[float, float]:
    """Return the two-sided p-value of the Mann-Kendall test (normal, with ties and continuity) and the slope."""
    first, second = np.triu_indices(len(values), 1)
    rises = values[second] - values[first]
    n = len(values)
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    if variance <= 0:
        return 1.0, 0.0
    score = max(0.0, abs(float(np.sum(np.sign(rises)))) - 1) / math.sqrt(variance)
    return 2 * ndtr(-score), median(rises / (places[second] - places[first]))


FEWEST: Final = 30
_MOST_CORRELATION: Final = 0.98
_LONG: Final = 400  # trials from which on what they did themselves is known better than what a model says
_SURE: Final = 3.0  # standard errors from which on pairs count as resembling each other


def autocorrelation(residuals: Residuals) -> DiagnosticFinding | None:
    """Return the resemblance of neighbours in the order of running; ``None`` with too few trials to tell.

    Their correlation after a straight line over the run is taken out; its standard error is 1/√N and its bias −1/N if
    there is none (Bartlett 1946; Box and Jenkins, Time Series Analysis, 2.1). N trials of a first-order autoregression
    tell as much of a mean as N (1 − ρ)/(1 + ρ) independent ones.
    """
    n = len(residuals)
    if n < FEWEST or residuals.blocks < 3:
        return None
    places = np.arange(n, dtype=np.float64) - (n - 1) / 2
    slope = float(np.sum(places * residuals.values)) / float(np.sum(places**2))
    detrended = residuals.values - residuals.values.mean() - slope * places
    rho = lag_1_correlation(detrended)
    if rho is None:
        return None
    paired, paired_score = _paired_autocorrelation(residuals)
    affected = rho > 0 and paired_score > _SURE and paired > 0.1
    bounded = max(-_MOST_CORRELATION, min(_MOST_CORRELATION, rho))
    effective = n * (1 - bounded) / (1 + bounded)
    if len(residuals.names) < 2:
        why = "Nothing is compared."
    elif affected:
        why = (
            f"Differences within blocks resemble those of the block before ({paired:.2f}): intervals may be too narrow."
        )
    else:
        why = f"Differences within blocks do not resemble those of the block before ({paired:.2f})."
    return DiagnosticFinding(
        kind="autocorrelation",
        measures="correlation of a trial with the one before",
        value=rho,
        p_value=2 * ndtr(-abs(rho + 1 / n) * math.sqrt(n)),
        naive_error=error_in(detrended)[0] if n >= _LONG else error_of_autocorrelation(bounded),
        says=f"A trial resembles the one before it (correlation {rho:.2f}): {number(n)} trials carry as much "
        f"information as {number(round(effective))} independent ones."
        if rho > 0
        else f"A trial tends to differ from the one before it (correlation {rho:.2f}).",
        verdict_affected=affected,
        why=why,
    )


def lag_1_correlation(values: Floats) -> float | None:
    """Return the correlation of each value with the one before; ``None`` where nothing varies."""
    away = values - values.mean()
    whole = float(np.sum(away**2))
    return float(np.sum(away[1:] * away[:-1])) / whole if whole > 0 else None


def _paired_autocorrelation(residuals: Residuals) -> tuple[float, float]:
    # Return the same within blocks, of all configurations together, and its distance from none in standard errors.
    within = residuals.values - residuals.block_averages[residuals.block]
    order = np.argsort(residuals.configuration, kind="stable")
    codes, values = residuals.configuration[order], within[order]
    next_to = codes[1:] == codes[:-1]
    whole = float(np.sum(values**2))
    if whole <= 1e-18 or len(residuals.names) < 2:
        return 0.0, 0.0
    rho = float(np.sum(values[1:][next_to] * values[:-1][next_to])) / whole
    independent = residuals.blocks * (len(residuals.names) - 1)
    return rho, (rho + 1 / residuals.blocks) * math.sqrt(independent)


FEWEST_EACH: Final = 5


def carry_over(residuals: Residuals) -> DiagnosticFinding | None:
    """Return the effect of what ran before; ``None`` with fewer than ``FEWEST_EACH`` trials after any configuration.

    One-way analysis of variance (Fisher) of the residuals by the configuration of the trial before. With two
    configurations only the first trials of blocks: there the one before is either of them.
    """
    values, before = residuals.values[1:], residuals.configuration[:-1]
    if len(residuals.names) == 2:
        first = np.flatnonzero(np.diff(residuals.block) > 0)
        values, before = values[first], before[first]
    counts = np.bincount(before, minlength=len(residuals.names))
    if len(residuals.names) < 2 or int(np.min(counts)) < FEWEST_EACH:
        return None
    p_value, effects = variance_between(values, before)
    strongest = int(np.argmax(np.abs(effects)))
    effect, name = float(effects[strongest]), residuals.names[strongest]
    # The effect is against the mean of all, the bias comes from that against all others.
    others = 1 - float(counts[strongest]) / float(np.sum(counts))
    # By what share of their trials the others follow it more often than it follows itself.
    after, itself = residuals.configuration[:-1] == strongest, residuals.configuration[1:] == strongest
    more_often = float(np.mean(after[~itself])) - float(np.mean(after[itself]))
    bias = effect / others * more_often
    affected = abs(bias) > residuals.sd * math.sqrt(2 / residuals.blocks)
    if affected:
        why = f"{name} never follows itself within a block, so it looks off by about {residuals.say(-bias)}."
    else:
        why = "The order is random, so the advantage of any configuration is smaller than the noise."
    return DiagnosticFinding(
        kind="carry-over",
        measures="largest effect of the previous trial",
        value=float(np.expm1(effect)) if residuals.scale == "ratio" else effect,
        p_value=p_value,
        naive_error=error_of_bias(effect / BATCH, residuals.sd),
        configuration=name,
        says=f"The previous trial matters: after {name} the level is {residuals.say(effect)} away from the mean.",
        verdict_affected=affected,
        why=why,
    )


def variance_between(values: Floats, groups: Whole) -> tuple[float, Floats]:
    """Return the p-value of the F test that all groups have one mean, and each mean's distance from that of all."""
    counts = np.bincount(groups).astype(np.float64)
    averages = np.bincount(groups, values) / counts
    effects = averages - values.mean()
    between = float(np.sum(counts * effects**2)) / (len(counts) - 1)
    within = float(np.sum((values - averages[groups]) ** 2)) / (len(values) - len(counts))
    if within == 0:
        return (0.0 if between else 1.0), effects
    return fdtrc(len(counts) - 1, len(values) - len(counts), between / within), effects


LENGTHS: Final = (1, 2, 4, 8)
FEWEST_BLOCKS_FOR_WARM_UP: Final = 12


def warm_up(residuals: Residuals) -> DiagnosticFinding | None:
    """Return how far the first blocks are off from what the later ones predict; ``None`` with too few blocks.

    For the first 1, 2, 4 and 8 blocks: their mean against the straight line through all later block means, with the t
    test of a prediction from a regression (Draper and Smith 1998, Applied Regression Analysis, 3.1); Bonferroni over
    lengths. A drift that goes on for the whole run is part of the line; and where later blocks are as far from it, it
    is the line that does not fit, and not the start.
    """
    if residuals.blocks < FEWEST_BLOCKS_FOR_WARM_UP:
        return None
    averages = residuals.block_averages
    lengths = [length for length in LENGTHS if length <= residuals.blocks // 4]
    tested = [(*_first_against_rest(averages, length), length) for length in lengths]
    p_value, off, length = min(tested)
    trials = length * float(np.mean(residuals.each_block))
    blocks = "The first block is" if length == 1 else f"The first {length} blocks are"
    return DiagnosticFinding(
        kind="warm-up",
        measures="deviation of the first blocks",
        value=float(np.expm1(off)) if residuals.scale == "ratio" else off,
        p_value=min(1.0, p_value * len(lengths)),
        naive_error=error_of_bias(off * min(1.0, trials / BATCH), residuals.sd),
        says=f"{blocks} off by {residuals.say(off)} from what the later ones predict: the warm-up was too short.",
        why=f"All configurations of a block are equally warm; `warm_up = {length}` in [design] would leave these out.",
    )


def _first_against_rest(averages: Floats, length: int) -> tuple[float, float]:
    places = np.arange(len(averages), dtype=np.float64)
    x, y = places[length:], averages[length:]
    spread = float(np.sum((x - x.mean()) ** 2))
    slope = float(np.sum((x - x.mean()) * y)) / spread
    residual = y - y.mean() - slope * (x - x.mean())
    variance = float(np.sum(residual**2)) / (len(y) - 2)
    away = float(places[:length].mean()) - float(x.mean())
    off = float(averages[:length].mean()) - float(y.mean()) - slope * away
    later = np.convolve(residual, np.ones(length) / length, "valid")
    if float(np.max(np.abs(later))) >= abs(off):
        return 1.0, off
    error = math.sqrt(variance * (1 / length + 1 / len(y) + away**2 / spread))
    if error == 0:
        return (0.0 if off else 1.0), off
    return 2 * stdtr(len(y) - 2, -abs(off) / error), off
