"""Ways to tell whether one configuration is slower than another, for many studies at once.

Ajuste's figures come from the product's own ``log_evidence``; a test shows that its words are those of
``ajuste.analysis.verdict.judge`` study by study. The others are what people do today.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from ajuste.study.schema import BudgetTable
from ajuste_stats.confidence_sequences import MIXTURE
from ajuste_stats.decision import trials_needed
from ajuste_stats.effects import ALSO, UNLIKE
from ajuste_stats.outliers import FAR, MAD_SCALE
from ajuste_stats.sign_intervals import FEWEST_IN_TIME, PLAIN, SHORT, log_evidence, wider_in_time
from ajuste_stats.three_sigma import SIGMAS
from benchmarks.verdicts.noise import Array
from benchmarks.verdicts.studies import Runs, Studies

Flags = NDArray[np.bool_]

ALPHA: Final = 0.05
SMALLEST_EFFECT: Final = 0.01
"""Range that Ajuste's studies call equivalent: this much to each side."""
MIN_BLOCKS: Final = BudgetTable().min_blocks
FIVE: Final = 5
BATCH: Final = 10
PAIRS: Final = 8
"""Number of pairs that a t test needs to see 2 % at 1 % noise with 90 % power; a test computes it."""
PEEK_FROM: Final = 3
"""A t test on pairs that is looked at all along is looked at from so many pairs on."""

LOWER, NOTHING, HIGHER, EQUIVALENT = -1, 0, 1, 2


@dataclass(frozen=True)
class Outcome:
    """Outcomes of a method when it stopped, for every study: ``word`` (LOWER …), after ``trials`` trials in all.

    ``held`` is whether its interval had the truth in it when it stopped, ``always`` whether at every look up to the
    last possible one; ``None`` where the method has no interval for the ratio.
    """

    word: NDArray[np.int8]
    trials: NDArray[np.int64]
    held: Flags | None = None
    always: Flags | None = None


@dataclass(frozen=True)
class Method:
    name: str
    title: str
    apply: Callable[[Studies], Outcome]


def ajuste(studies: Studies) -> Outcome:
    """Blocks in random order; a look after each until a verdict is in."""
    return _judged(studies.in_blocks(), studies.effect)


def normal_mixture(studies: Studies) -> Outcome:
    """Intervals that rest on normal differences, from the third block on, in both orders."""
    runs = studies.in_blocks()
    return _judged(runs, studies.effect, mixture_evidence, least=PEEK_FROM)


Evidence = Callable[[Array, int], Array]
"""The log evidence of differences against a mean of 0, after each of them: that it is higher (1), lower (−1), or not 0.
"""


def product_evidence(baseline: Array, other: Array, *, of_seeds: bool = False) -> Evidence:
    """Ajuste's: by signs, and where the spreads are unlike, or a seed differs far more, by the normal mixture, too."""
    spreads = [np.sqrt(_moments(side)[1]) for side in (baseline, other)]
    unlike = np.maximum(*spreads) > UNLIKE * np.minimum(*spreads)
    also = unlike | _has_far(other - baseline) if of_seeds else unlike
    share = np.where(unlike, math.log(ALSO), 0.0)

    def evidence(differences: Array, side: int) -> Array:
        signs = log_evidence(differences, mixture=PLAIN if of_seeds else SHORT, side=side)
        if not also.any():
            return signs
        return np.asarray(np.where(also, np.minimum(signs, mixture_evidence(differences) + share), signs))

    return evidence


def _has_far(differences: Array) -> Flags:
    """Return after each difference whether one so far lies far from the others."""
    has = np.zeros(differences.shape, np.bool_)
    for n in range(1, differences.shape[1] + 1):
        until = differences[:, :n]
        away = np.abs(until - np.median(until, axis=1, keepdims=True))
        unit = MAD_SCALE * np.median(away, axis=1)
        has[:, n - 1] = (unit > 0) & (np.max(away, axis=1) > FAR * unit)
    return has


def mixture_evidence(differences: Array, _: int = 0) -> Array:
    """The same by the normal mixture of ``ajuste_stats.confidence_sequences``, of both sides."""
    n = np.arange(1, differences.shape[1] + 1)
    squares, total = np.cumsum(differences**2, axis=1) + 1e-300, np.cumsum(differences, axis=1)
    whole = n + MIXTURE
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 * np.log(MIXTURE / whole) - n / 2 * np.log1p(-(total**2) / squares / whole))


def _judged(runs: Runs, effect: float, evidence: Evidence | None = None, *, least: int = 1) -> Outcome:
    """Words after each block in both orders; without ``evidence`` Ajuste's."""
    zone, truth = float(np.log1p(SMALLEST_EFFECT)), float(np.log1p(effect))
    if evidence is None:
        word, held = ajuste_words(runs.baseline, runs.other, truth, zone)
    else:
        word, held = words(runs.other - runs.baseline, truth, zone, evidence)
    blocks = np.arange(1, word.shape[1] + 1)
    firsts = np.cumsum(runs.baseline_first, axis=1)
    in_one_order = (firsts == 0) | (firsts == blocks)
    word[in_one_order], held[in_one_order] = NOTHING, True
    return _stopped(word, max(least, MIN_BLOCKS), held)


def words(differences: Array, truth: float, zone: float, evidence: Evidence) -> tuple[NDArray[np.int64], Flags]:
    """Return what is said after each block, from the evidence against no effect and both edges of the zone; and whether
    the true mean is not refuted then.
    """
    against = {name: evidence(differences - at, side) for name, (at, side) in _effects(truth, zone).items()}
    against["higher"] = np.where(np.cumsum(differences, axis=1) > 0, against["none"], -np.inf)
    return _words(differences, zone, against)


def _effects(truth: float, zone: float) -> dict[str, tuple[float, int]]:
    """Return the effects that are asked for, and the side that evidence is of."""
    return {"none": (0.0, 0), "higher": (0.0, 1), "upper": (zone, -1), "lower": (-zone, 1), "truth": (truth, 0)}


def ajuste_words(
    baseline: Array, other: Array, truth: float, zone: float, *, of_seeds: bool = False
) -> tuple[NDArray[np.int64], Flags]:
    """Ajuste's: intervals are wider where neighbouring blocks resemble each other, unless they are seeds; nothing is
    said where means disagree with typical trials, or may, and *equivalent* not of so few trials that rare ones hide.
    """
    differences = other - baseline
    evidence = product_evidence(baseline, other, of_seeds=of_seeds)
    effects = _effects(truth, zone)
    against = {name: evidence(differences - at, side) for name, (at, side) in effects.items()}
    for blocks in () if of_seeds else range(FEWEST_IN_TIME, differences.shape[1] + 1):
        until = differences[:, :blocks]
        wider = wider_in_time(until)
        rows = np.flatnonzero(wider > 1)
        if not len(rows):
            continue
        row_evidence = product_evidence(baseline[rows, :blocks], other[rows, :blocks])
        mean = np.mean(until[rows], axis=1)
        for name, (at, side) in effects.items():
            shift = mean + (at - mean) / wider[rows]
            against[name][rows, blocks - 1] = row_evidence(until[rows] - shift[:, None], side)[:, -1]
    word, held = _words(differences, zone, against)
    exceeds, opposes = _of_means(baseline, other, zone)
    word[((word == HIGHER) | (word == LOWER)) & opposes] = NOTHING
    word[(word == EQUIVALENT) & exceeds] = NOTHING
    early = word[:, : trials_needed() - 1]
    early[early == EQUIVALENT] = NOTHING
    return word, held


def _of_means(baseline: Array, other: Array, zone: float) -> tuple[Flags, Flags]:
    """Return whether mean trials may change by more than the zone, and whether they may change the other way than
    typical ones, as ``ajuste_stats.effects`` asks.
    """
    n = np.arange(1, baseline.shape[1] + 1)
    logs, trials = other - baseline, np.exp(other) - np.exp(baseline)
    level = np.cumsum(np.exp(baseline), axis=1) / n
    sums, squares = np.cumsum(trials, axis=1), np.cumsum(trials**2, axis=1)
    most, least = np.maximum.accumulate(trials, axis=1), np.minimum.accumulate(trials, axis=1)
    mean = np.cumsum(logs, axis=1) / n
    exceeds = np.any([np.abs(np.log1p((sums + far) / (n + 1) / level)) > zone for far in (most, least)], axis=0)
    median, middle = (np.stack([np.median(values[:, :k], axis=1) for k in n], axis=1) for values in (logs, trials))
    opposes = (np.log1p(sums / n / level) * mean < 0) | ((median * mean < 0) & (np.abs(median) > zone))
    spreads = [np.sqrt(_moments(side)[1]) for side in (baseline, other)]
    unlike = np.maximum(*spreads) > UNLIKE * np.minimum(*spreads)
    for side, far, near in ((mean < 0, most, least), (mean >= 0, -least, -most)):
        sign = np.where(side, 1, -1)
        centre = sign * middle
        doubtful = side & unlike & (far - centre > centre - near)
        average = (sign * sums + far) / (n + 1)
        variance = np.maximum((squares + far**2) / (n + 1) - average**2, 0) * (n + 1) / n
        bound = average + np.sqrt(variance / (n + 1)) * stdtrit(n, 1 - ALPHA)
        opposes |= doubtful & (bound >= 0)
    return exceeds, opposes


def _words(differences: Array, zone: float, against: Mapping[str, Array]) -> tuple[NDArray[np.int64], Flags]:
    limit = -math.log(ALPHA)
    mean = np.cumsum(differences, axis=1) / np.arange(1, differences.shape[1] + 1)
    word = np.where(against["none"] >= limit, np.where(against["higher"] >= against["none"], HIGHER, LOWER), NOTHING)
    word[(against["upper"] >= limit) & (against["lower"] >= limit) & (abs(mean) < zone)] = EQUIVALENT
    return word, np.asarray(against["truth"] < limit)


def three_sigma_values(peeking: bool) -> Callable[[Studies], Outcome]:
    """Batches of five; different where the means are three standard deviations of single values apart."""
    return lambda studies: _of_batches(
        studies, FIVE, peeking, lambda baseline, other, n: _sigmas(baseline, other, np.ones_like(n))
    )


def three_sigma_means(peeking: bool) -> Callable[[Studies], Outcome]:
    """Batches of five; different where the means are three standard errors apart."""
    return lambda studies: _of_batches(studies, FIVE, peeking, _sigmas)


def welch(peeking: bool) -> Callable[[Studies], Outcome]:
    """Two batches of ten, one after the other, and Welch's t test: hyperfine and its script."""
    return lambda studies: _of_batches(studies, BATCH, peeking, welch_p)


def mann_whitney(peeking: bool) -> Callable[[Studies], Outcome]:
    """The same batches and the test of Mann and Whitney (normal approximation, corrected for continuity)."""
    return lambda studies: _of_batches(studies, BATCH, peeking, mann_whitney_p)


def paired_t(peeking: bool) -> Callable[[Studies], Outcome]:
    """Blocks in random order as Ajuste's, and the ordinary t interval of the log ratios."""

    def apply(studies: Studies) -> Outcome:
        runs = studies.in_blocks()
        mean, variance = _moments(runs.other - runs.baseline)
        n = np.arange(1, studies.most + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            half = np.sqrt(variance / (n - 1)) * stdtrit(n - 1, 1 - ALPHA / 2)
        half[:, 0] = np.inf
        word = np.where(mean > half, HIGHER, np.where(mean < -half, LOWER, NOTHING))
        held = np.abs(mean - np.log1p(studies.effect)) <= half
        return _stopped(word, PEEK_FROM, held) if peeking else _at(word, PAIRS, held)

    return apply


METHODS: Final = (
    Method("ajuste", "Ajuste, looking after every block", ajuste),
    Method("normal-mixture", "normal mixture, from block 3", normal_mixture),
    Method("three-sigma-values", "mean of 5, 3σ of values", three_sigma_values(False)),
    Method("three-sigma-means", "mean of 5, 3σ of means", three_sigma_means(False)),
    Method("welch", "Welch, two batches of 10", welch(False)),
    Method("mann-whitney", "Mann–Whitney, two batches of 10", mann_whitney(False)),
    Method("paired-t", f"paired t, {PAIRS} blocks", paired_t(False)),
    Method("three-sigma-values-peeking", "3σ of values, peeking", three_sigma_values(True)),
    Method("three-sigma-means-peeking", "3σ of means, peeking", three_sigma_means(True)),
    Method("welch-peeking", "Welch, peeking", welch(True)),
    Method("mann-whitney-peeking", "Mann–Whitney, peeking", mann_whitney(True)),
    Method("paired-t-peeking", "paired t, peeking", paired_t(True)),
)


def welch_p(baseline: Array, other: Array, n: Array) -> Array:
    """p of Welch's test after n = 1, 2, … values of each; 1 where there are too few."""
    (first, first_variance), (second, second_variance) = _moments(baseline), _moments(other)
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = first_variance / (n - 1), second_variance / (n - 1)
        freedom = (left + right) ** 2 * (n - 1) / (left**2 + right**2)
        p = 2 * stdtr(freedom, -np.abs(second - first) / np.sqrt(left + right))
    return np.where(np.isnan(p), 1.0, p)


def mann_whitney_p(baseline: Array, other: Array, n: Array) -> Array:
    """p of the test of Mann and Whitney after n = 1, 2, … values of each, as scipy's ``asymptotic`` (no ties)."""
    wins = np.empty_like(baseline)
    total = np.zeros(len(baseline))
    for last in range(baseline.shape[1]):
        total += (baseline[:, last : last + 1] < other[:, : last + 1]).sum(axis=1)
        total += (baseline[:, :last] < other[:, last : last + 1]).sum(axis=1)
        wins[:, last] = total
    deviation = np.sqrt(n * n * (2 * n + 1) / 12)
    return np.asarray(np.minimum(1.0, 2 * ndtr(-(np.abs(wins - n * n / 2) - 0.5) / deviation)))


def _sigmas(baseline: Array, other: Array, shrink: Array) -> Array:
    """0 where the rule calls two means different, else 1; ``shrink`` is n for the errors of means."""
    (first, first_variance), (second, second_variance) = _moments(baseline), _moments(other)
    n = np.arange(1, baseline.shape[1] + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = SIGMAS * np.sqrt((first_variance + second_variance) * n / (n - 1) / shrink)
        return np.where(np.abs(second - first) > limit, 0.0, 1.0)


def _of_batches(
    studies: Studies, batch: int, peeking: bool, p_values: Callable[[Array, Array, Array], Array]
) -> Outcome:
    """Compare batches by times, as people do, not by logs. With ``peeking`` trials are added by turns until p < α."""
    runs = studies.in_batches(batch)
    if not peeking:
        runs = Runs(runs.baseline[:, :batch], runs.other[:, :batch], runs.baseline_first)
    baseline, other = np.exp(runs.baseline), np.exp(runs.other)
    n = np.arange(1.0, baseline.shape[1] + 1)
    p = p_values(baseline, other, n)
    higher = _moments(other)[0] > _moments(baseline)[0]
    word = np.where(p < ALPHA, np.where(higher, HIGHER, LOWER), NOTHING)
    return _stopped(word, batch) if peeking else _at(word, batch)


def _moments(values: Array) -> tuple[Array, Array]:
    """Mean and variance (divided by n) of the first n values, for every n."""
    n = np.arange(1, values.shape[1] + 1)
    centred = values - values[:, :1]
    mean = np.cumsum(centred, axis=1) / n
    variance = np.maximum(np.cumsum(centred**2, axis=1) / n - mean**2, 0)
    return mean + values[:, :1], variance


def _stopped(word: NDArray[np.int64], least: int, held: Flags | None = None) -> Outcome:
    """Stopping at the first look from ``least`` on that says something, or at the last."""
    is_decided = word != NOTHING
    is_decided[:, : least - 1] = False
    at = np.where(is_decided.any(axis=1), is_decided.argmax(axis=1), word.shape[1] - 1)
    return _outcome(word, at, held)


def _at(word: NDArray[np.int64], n: int, held: Flags | None = None) -> Outcome:
    return _outcome(word, np.full(len(word), n - 1), held)


def _outcome(word: NDArray[np.int64], at: NDArray[np.int64], held: Flags | None) -> Outcome:
    study = np.arange(len(word))
    return Outcome(
        word=word[study, at].astype(np.int8),
        trials=2 * (at + 1),
        held=None if held is None else held[study, at],
        always=None if held is None else np.asarray(held.all(axis=1)),
    )
