"""Findings: which of the measured figures disturb, how much, and what can be done. Pure; thresholds are data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from ajuste.analysis.summary import MOST_BLOCKS
from ajuste.machine.doctor.measurements import (
    NoiseMeasurements,
    NoiseSpread,
    blocks_for,
    drift_percent,
    effect_after,
    spread_of,
)
from ajuste.model.base import BaseModel

Severity = Literal["much", "some", "note", "none", "unknown"]

ORDER: Final[tuple[Severity, ...]] = ("much", "some", "note", "none", "unknown")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FindingRule(_Part):
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
    def _one_kind(self) -> Self:
        if bool(self.measure) == bool(self.fact):
            raise ValueError("a finding is of a measure or of a fact")
        if self.measure and (self.some is None or self.much is None or not self.some < self.much):
            raise ValueError("a measure needs thresholds, some below much")
        if self.fact and not self.when:
            raise ValueError("a fact needs the values that matter")
        return self


class Standard(_Part):
    """When a machine is called quiet or usable: blocks that an effect takes at most."""

    effect_percent: float
    quiet_blocks: int
    usable_blocks: int


class Detectable(_Part):
    """What is told of what can be detected: effects in per cent, numbers of blocks."""

    effects_percent: tuple[float, ...]
    blocks: tuple[int, ...]


class Book(_Part):
    """All of ``findings.toml``."""

    finding: tuple[FindingRule, ...]
    verdict: Standard
    detectable: Detectable


class NoiseFinding(_Part):
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
    """The rules by which measurements are judged."""
    return Book.model_validate(tomllib.loads(files(__package__).joinpath("findings.toml").read_text()))


def findings_of(measured: NoiseMeasurements, derived: Mapping[str, float | None]) -> tuple[NoiseFinding, ...]:
    """All findings, the most important first. ``derived`` are figures that were calculated from the measurements."""
    figures = {**measured.model_dump(), **derived}
    found = [
        _of_measure(rule, figures.get(rule.measure), measured.unknown)
        if rule.measure
        else _of_fact(rule, measured.facts)
        for rule in book().finding
    ]
    told = [finding for finding in found if finding is not None]
    return tuple(sorted(told, key=lambda finding: (ORDER.index(finding.severity), -_excess(finding))))


def _of_measure(rule: FindingRule, value: float | None, unknown: Mapping[str, str]) -> NoiseFinding | None:
    assert rule.some is not None, "a measure has thresholds"
    assert rule.much is not None, "a measure has thresholds"
    about = {"name": rule.name, "title": rule.title, "unit": rule.unit}
    if value is None:
        reason = unknown.get(rule.measure, "was not measured")
        return NoiseFinding(**about, severity="unknown", said=reason)
    size = abs(value)
    severity: Severity = "much" if size >= rule.much else "some" if size >= rule.some else "none"
    said = f"{amount(value, rule.unit)} {rule.what}"
    threshold = rule.much if severity == "much" else rule.some
    advice = rule.advice if severity != "none" else ()
    return NoiseFinding(**about, severity=severity, said=said, value=value, threshold=threshold, advice=advice)


def _of_fact(rule: FindingRule, facts: Mapping[str, str]) -> NoiseFinding | None:
    value = facts.get(rule.fact)
    if value is None or value in rule.unless or not (value in rule.when or "*" in rule.when):
        return None
    return NoiseFinding(
        name=rule.name, severity="note", title=rule.title, said=f"{value} {rule.what}", advice=rule.advice
    )


def _excess(finding: NoiseFinding) -> float:
    """How many times its threshold a figure is."""
    if finding.value is None or not finding.threshold:
        return 0.0
    return abs(finding.value) / finding.threshold


def amount(value: float, unit: str) -> str:
    """A figure with three digits: ``12.3 %``, ``0.04 %``, ``1,235 µs``."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip().replace("-", "−")


# The diagnosis: what can be detected on this machine, what disturbs, and a verdict. Pure.


Word = Literal["quiet", "usable", "noisy"]

_FEWEST_RUNS = 3


class _Judgement(BaseModel):
    model_config = ConfigDict(frozen=True)


class NoiseEffect(_Judgement):
    """An effect of that size takes about ``blocks`` blocks (``low`` to ``high``); ``None`` is more than 10,000."""

    effect_percent: float
    blocks: int | None
    low: int | None
    high: int | None


class Power(_Judgement):
    """So many blocks show effects from ``effect_percent`` on; ``None`` where they are too few for any."""

    blocks: int
    effect_percent: float | None


class Diagnosis(_Judgement):
    """``findings`` are sorted, the most important first, with those that do not disturb at the end."""

    verdict: Word
    sentence: str
    spread_percent: float
    effects: tuple[NoiseEffect, ...]
    powers: tuple[Power, ...]
    findings: tuple[NoiseFinding, ...]
    measured: NoiseMeasurements


def diagnose(measured: NoiseMeasurements) -> Diagnosis:
    """What ``measured`` means. It must have at least three runs of the job."""
    if len(measured.runs) < _FEWEST_RUNS:
        raise ValueError(f"there are {len(measured.runs)} runs; expected at least {_FEWEST_RUNS}")
    elapsed = np.array([run.elapsed_s for run in measured.runs])
    spread = spread_of(elapsed)
    detectable = book().detectable
    word, sentence = _verdict(spread)
    return Diagnosis(
        verdict=word,
        sentence=sentence,
        spread_percent=spread.run_percent,
        effects=tuple(NoiseEffect(**vars(blocks_for(spread, percent))) for percent in detectable.effects_percent),
        powers=tuple(Power(blocks=n, effect_percent=effect_after(spread, n)) for n in detectable.blocks),
        findings=findings_of(measured, _derived(measured, spread)),
        measured=measured,
    )


def _derived(measured: NoiseMeasurements, spread: NoiseSpread) -> dict[str, float | None]:
    """Figures by the names that ``findings.toml`` calls them."""
    elapsed = np.array([run.elapsed_s for run in measured.runs])
    cpu = np.array([run.cpu_s for run in measured.runs])
    began = np.array([run.began_s for run in measured.runs])
    interrupts = measured.interrupts_per_s
    return {
        "spread_percent": spread.run_percent,
        "cpu_time_spread_percent": spread_of(cpu).run_percent if np.all(cpu > 0) else None,
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
