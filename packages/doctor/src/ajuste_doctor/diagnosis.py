"""Measurements of the doctor; and the diagnosis: which figures disturb, how much, and what can be done.
Pure; thresholds are data.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal, Self

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ajuste.model.base import BaseModel, ClosedModel
from ajuste_stats.confidence_sequences import fewest, half_width
from ajuste_stats.precision import MOST_BLOCKS, blocks_needed

ALPHA: Final = 0.05
"""Error rate of the one comparison that is spoken of."""

# Probability that the true number of blocks lies in the reported range.
_RANGE: Final = 0.9

# A drift is believed from so many standard errors of its slope on.
_DRIFT_ERRORS: Final = 3.0

Severity = Literal["much", "some", "note", "none", "unknown"]
ORDER: Final[tuple[Severity, ...]] = ("much", "some", "note", "none", "unknown")
Word = Literal["quiet", "usable", "noisy"]
_FEWEST_RUNS = 3


class Jitter(BaseModel):
    """Lateness of sleeps of a millisecond, in microseconds."""

    sleeps: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float


class JobRun(BaseModel):
    """A run of the fixed job: when it began (from the first one), how long it took, and what CPU time it had."""

    began_s: float
    elapsed_s: float
    cpu_s: float


class Busy(BaseModel):
    """A program of others that used the CPU meanwhile: the share of one CPU, summed over its processes."""

    name: str
    cpu_percent: float


class NoiseMeasurements(BaseModel):
    """``None`` is what could not be measured; ``unknown`` says why.

    Shares are in per cent: ``steal_percent`` and ``others_percent`` of all CPUs, ``pressure_…`` of the time in which
    some task waited (Documentation/accounting/psi.rst). ``frequency_range_percent`` is by how much the fastest CPU's
    frequency varied from look to look, ``throttled`` how often a CPU was throttled because it was hot.
    """

    seconds: float
    cpus: int
    jitter: Jitter | None = None
    runs: tuple[JobRun, ...] = ()
    steal_percent: float | None = None
    others_percent: float | None = None
    runnable: float | None = None
    pressure_cpu_percent: float | None = None
    pressure_io_percent: float | None = None
    pressure_memory_percent: float | None = None
    frequency_range_percent: float | None = None
    throttled: int | None = None
    interrupts_per_s: float | None = None
    switches_per_s: float | None = None
    busy: tuple[Busy, ...] = ()
    facts: dict[str, str] = Field(default_factory=dict)
    unknown: dict[str, str] = Field(default_factory=dict)


# From the runs of a fixed job to what a study could see on this machine. Pure.
#
# A study compares configurations within blocks, where their trials are neighbours in time. So what counts is not how
# far runs of half a minute lie apart, but how far neighbours do: the variance of a pair's log ratio is estimated by
# the mean square of successive differences (von Neumann, Kent, Bellinson and Hart, "The mean square successive
# difference", Annals of Mathematical Statistics 12, 1941), which slow drift hardly touches.


@dataclass(frozen=True)
class NoiseSpread:
    """``variance`` of the log ratio of two neighbouring runs, from ``n`` runs."""

    n: int
    variance: float

    @property
    def run_percent(self) -> float:
        """Return the standard deviation of one run in per cent, without drift."""
        return 100 * math.expm1(math.sqrt(self.variance / 2))


class NoiseEffect(BaseModel):
    """About how many blocks show an effect of that size; ``None`` is more than ``MOST_BLOCKS``. With 90 % confidence,
    for noise that is normal, the spread that was measured stands for ``low`` to ``high``.
    """

    effect_percent: float
    blocks: int | None
    low: int | None
    high: int | None


def measure_spread(values: NDArray[np.float64]) -> NoiseSpread:
    """Return the spread of positive ``values`` (times of runs, in order), at least three of them."""
    differences = np.diff(np.log(values))
    return NoiseSpread(len(values), float(np.mean(differences**2)))


def blocks_for(spread: NoiseSpread, effect_percent: float) -> NoiseEffect:
    """Return the blocks that distinguish a difference of that size from none, by ``confidence_sequences``."""
    # The variance of this estimator is 2 σ⁴ (3n − 4)/(n − 1)² for independent runs: that of chi-square with so many
    # degrees of freedom (same source).
    freedom = 2 * (spread.n - 1) ** 2 / (3 * spread.n - 4)
    sides = [(1 + _RANGE) / 2, (1 - _RANGE) / 2]
    low, high = (spread.variance * freedom / scipy.special.chdtri(freedom, 1 - side) for side in sides)
    blocks, least, most = (
        blocks_needed(effect_percent / 100, variance, ALPHA) for variance in (spread.variance, low, high)
    )
    return NoiseEffect(effect_percent=effect_percent, blocks=blocks, low=least, high=most)


def effect_after(spread: NoiseSpread, blocks: int) -> float | None:
    """Return the smallest effect, in per cent, that ``blocks`` blocks distinguish from none; ``None`` for too few."""
    if blocks < fewest(ALPHA):
        return None
    width = half_width(blocks, spread.variance, ALPHA)
    return 100 * math.expm1(width) if width < 700 else None


def drift_percent(began_s: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return by how much the times of runs grew (or fell) from first to last, by a straight line through their logs; 0
    unless the slope is several standard errors long.
    """
    if len(values) < 3 or np.ptp(began_s) == 0:
        return 0.0
    slope, _ = np.polyfit(began_s, np.log(values), 1)
    times = began_s - np.mean(began_s)
    left = np.log(values) - np.mean(np.log(values)) - slope * times
    error = math.sqrt(float(left @ left) / (len(values) - 2) / float(times @ times))
    if not abs(slope) > _DRIFT_ERRORS * error:
        return 0.0
    return 100 * math.expm1(float(slope) * float(np.ptp(began_s)))


class FindingRule(ClosedModel):
    """A table of ``findings.toml``: of a ``measure`` with two thresholds, or of a ``fact`` with values that matter."""

    name: str
    title: str
    what: str
    advice: tuple[str, ...] = Field(min_length=1)
    measure: str = ""
    unit: str = ""
    some: float | None = None
    much: float | None = None
    fact: str = ""
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if bool(self.measure) == bool(self.fact):
            raise ValueError("a finding is of a measure or of a fact")
        if self.measure and (self.some is None or self.much is None or not self.some < self.much):
            raise ValueError("a measure needs thresholds, some below much")
        if self.fact and not self.when:
            raise ValueError("a fact needs the values that matter")
        return self


class Standard(ClosedModel):
    """The standard of a quiet or usable machine: blocks that an effect takes at most."""

    effect_percent: float
    quiet_blocks: int
    usable_blocks: int


class Detectable(ClosedModel):
    """The effects whose detection is reported: effects in per cent, numbers of blocks."""

    effects_percent: tuple[float, ...]
    blocks: tuple[int, ...]


class Book(ClosedModel):
    """The content of ``findings.toml``."""

    finding: tuple[FindingRule, ...]
    verdict: Standard
    detectable: Detectable


class NoiseFinding(ClosedModel):
    """``value`` in ``unit`` against the ``threshold`` that it exceeds, or the first one if it exceeds none. ``said`` is
    the whole in words, or the reason why there is no value.
    """

    name: str
    severity: Severity
    title: str
    said: str
    value: float | None = None
    unit: str = ""
    threshold: float | None = None
    advice: tuple[str, ...] = ()


@cache
def book() -> Book:
    """Return the rules that judge measurements."""
    return Book.model_validate(tomllib.loads(files(__package__).joinpath("findings.toml").read_text()))


def diagnose_noise(measured: NoiseMeasurements, derived: Mapping[str, float | None]) -> tuple[NoiseFinding, ...]:
    """Return all findings, the most important first; ``derived`` figures are calculated from the measurements."""
    figures = {**measured.model_dump(), **derived}
    candidates = [
        _of_measure(rule, figures.get(rule.measure), measured.unknown)
        if rule.measure
        else _of_fact(rule, measured.facts)
        for rule in book().finding
    ]
    findings = [finding for finding in candidates if finding is not None]
    return tuple(sorted(findings, key=lambda finding: (ORDER.index(finding.severity), -_excess(finding))))


def _of_measure(rule: FindingRule, value: float | None, unknown: Mapping[str, str]) -> NoiseFinding | None:
    assert rule.some is not None, "a measure has thresholds"
    assert rule.much is not None, "a measure has thresholds"
    about = {"name": rule.name, "title": rule.title, "unit": rule.unit}
    if value is None:
        reason = unknown.get(rule.measure, "was not measured")
        return NoiseFinding(**about, severity="unknown", said=reason)
    size = abs(value)
    severity: Severity = "much" if size >= rule.much else "some" if size >= rule.some else "none"
    sentence = f"{amount(value, rule.unit)} {rule.what}"
    threshold = rule.much if severity == "much" else rule.some
    advice = rule.advice if severity != "none" else ()
    return NoiseFinding(**about, severity=severity, said=sentence, value=value, threshold=threshold, advice=advice)


def _of_fact(rule: FindingRule, facts: Mapping[str, str]) -> NoiseFinding | None:
    value = facts.get(rule.fact)
    if value is None or value in rule.unless or not (value in rule.when or "*" in rule.when):
        return None
    return NoiseFinding(
        name=rule.name, severity="note", title=rule.title, said=f"{value} {rule.what}", advice=rule.advice
    )


def _excess(finding: NoiseFinding) -> float:
    if finding.value is None or not finding.threshold:
        return 0.0
    return abs(finding.value) / finding.threshold


def amount(value: float, unit: str) -> str:
    """Return a figure with three digits: ``12.3 %``, ``0.04 %``, ``1,235 µs``."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip().replace("-", "−")


# The diagnosis: what can be detected on this machine, what disturbs, and a verdict. Pure.


class Power(BaseModel):
    """The least effect that so many blocks show, in per cent; ``None`` where they are too few for any."""

    blocks: int
    effect_percent: float | None


class Diagnosis(BaseModel):
    """``findings`` are sorted, the most important first, with those that do not disturb at the end."""

    verdict: Word
    sentence: str
    spread_percent: float
    effects: tuple[NoiseEffect, ...]
    powers: tuple[Power, ...]
    findings: tuple[NoiseFinding, ...]
    measured: NoiseMeasurements


def diagnose(measured: NoiseMeasurements) -> Diagnosis:
    """Judge ``measured``, which must have at least three runs of the job."""
    if len(measured.runs) < _FEWEST_RUNS:
        raise ValueError(f"there are {len(measured.runs)} runs; expected at least {_FEWEST_RUNS}")
    elapsed = np.array([run.elapsed_s for run in measured.runs])
    spread = measure_spread(elapsed)
    detectable = book().detectable
    word, sentence = _verdict(spread)
    return Diagnosis(
        verdict=word,
        sentence=sentence,
        spread_percent=spread.run_percent,
        effects=tuple(blocks_for(spread, percent) for percent in detectable.effects_percent),
        powers=tuple(Power(blocks=n, effect_percent=effect_after(spread, n)) for n in detectable.blocks),
        findings=diagnose_noise(measured, _derived(measured, spread)),
        measured=measured,
    )


def _derived(measured: NoiseMeasurements, spread: NoiseSpread) -> dict[str, float | None]:
    elapsed = np.array([run.elapsed_s for run in measured.runs])
    cpu = np.array([run.cpu_s for run in measured.runs])
    began = np.array([run.began_s for run in measured.runs])
    interrupts = measured.interrupts_per_s
    return {
        "spread_percent": spread.run_percent,
        "cpu_time_spread_percent": measure_spread(cpu).run_percent if np.all(cpu > 0) else None,
        "waiting_percent": float(100 * max(0.0, 1 - np.sum(cpu) / np.sum(elapsed))),
        "drift_percent": drift_percent(began, elapsed),
        "jitter_p99_us": measured.jitter.p99_us if measured.jitter else None,
        "jitter_max_us": measured.jitter.max_us if measured.jitter else None,
        "interrupts_per_s_per_cpu": None if interrupts is None else interrupts / measured.cpus,
    }


def _verdict(spread: NoiseSpread) -> tuple[Word, str]:
    standard = book().verdict
    effect = f"{standard.effect_percent:g} % effects"
    blocks = blocks_for(spread, standard.effect_percent).blocks
    if blocks is None:
        return "noisy", f"noisy: {effect} need more than {MOST_BLOCKS:,} blocks"
    word: Word = "noisy"
    if blocks <= standard.usable_blocks:
        word = "quiet" if blocks <= standard.quiet_blocks else "usable"
    return word, f"{word}: {effect} need about {blocks:,} blocks"
