"""Findings: which of the measured figures disturb, how much, and what can be done. Pure; thresholds are data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ajuste.doctor.measurements import Measurements

Severity = Literal["much", "some", "note", "none", "unknown"]

ORDER: Final[tuple[Severity, ...]] = ("much", "some", "note", "none", "unknown")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(_Part):
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

    finding: tuple[Rule, ...]
    verdict: Standard
    detectable: Detectable


class Finding(_Part):
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


def findings_of(measured: Measurements, derived: Mapping[str, float | None]) -> tuple[Finding, ...]:
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


def _of_measure(rule: Rule, value: float | None, unknown: Mapping[str, str]) -> Finding | None:
    assert rule.some is not None, "a measure has thresholds"
    assert rule.much is not None, "a measure has thresholds"
    about = {"name": rule.name, "title": rule.title, "unit": rule.unit}
    if value is None:
        reason = unknown.get(rule.measure, "was not measured")
        return Finding(**about, severity="unknown", said=reason)
    size = abs(value)
    severity: Severity = "much" if size >= rule.much else "some" if size >= rule.some else "none"
    said = f"{amount(value, rule.unit)} {rule.what}"
    threshold = rule.much if severity == "much" else rule.some
    advice = rule.advice if severity != "none" else ()
    return Finding(**about, severity=severity, said=said, value=value, threshold=threshold, advice=advice)


def _of_fact(rule: Rule, facts: Mapping[str, str]) -> Finding | None:
    value = facts.get(rule.fact)
    if value is None or value in rule.unless or not (value in rule.when or "*" in rule.when):
        return None
    return Finding(name=rule.name, severity="note", title=rule.title, said=f"{value} {rule.what}", advice=rule.advice)


def _excess(finding: Finding) -> float:
    """How many times its threshold a figure is."""
    if finding.value is None or not finding.threshold:
        return 0.0
    return abs(finding.value) / finding.threshold


def amount(value: float, unit: str) -> str:
    """A figure with three digits: ``12.3 %``, ``0.04 %``, ``1,235 µs``."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip().replace("-", "−")
