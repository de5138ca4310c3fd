"""Carry-over: whether it matters which configuration ran just before.

One-way analysis of variance (Fisher) of the residuals by the configuration of the trial before. With two configurations
only the first trials of blocks: there the one before is either of them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import fdtrc

from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import BATCH, error_of_bias
from ajuste.analysis.diagnostics.residuals import Floats, Residuals, Whole

FEWEST_EACH: Final = 5


def carry_over(residuals: Residuals) -> Finding | None:
    """The effect of what ran before; ``None`` with fewer than ``FEWEST_EACH`` trials after any configuration."""
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
    # The effect is told against the mean of all, the bias comes from that against all others.
    others = 1 - float(counts[strongest]) / float(np.sum(counts))
    bias = effect / others * _more_often_after_another(residuals, strongest)
    affected = abs(bias) > residuals.sd * math.sqrt(2 / residuals.blocks)
    if affected:
        why = f"{name} never follows itself within a block, so that it looks about {residuals.say(-bias)} off."
    else:
        why = "What runs before what is drawn at random: the advantage of any configuration is smaller than the noise."
    return Finding(
        kind="carry-over",
        measures="largest effect of what ran just before",
        value=float(np.expm1(effect)) if residuals.scale == "ratio" else effect,
        p_value=p_value,
        naive_error=error_of_bias(effect / BATCH, residuals.sd),
        configuration=name,
        says=f"What ran just before matters: after {name} the level is {residuals.say(effect)} away from the mean.",
        verdict_affected=affected,
        why=why,
    )


def _more_often_after_another(residuals: Residuals, own: int) -> float:
    """By what share of their trials the others follow configuration ``own`` more often than it follows itself."""
    after = residuals.configuration[:-1] == own
    itself = residuals.configuration[1:] == own
    return float(np.mean(after[~itself])) - float(np.mean(after[itself]))


def variance_between(values: Floats, groups: Whole) -> tuple[float, Floats]:
    """The p-value of the F test that all groups have one mean, and how far each mean is from that of all."""
    counts = np.bincount(groups).astype(np.float64)
    means = np.bincount(groups, values) / counts
    effects = means - values.mean()
    between = float(np.sum(counts * effects**2)) / (len(counts) - 1)
    within = float(np.sum((values - means[groups]) ** 2)) / (len(values) - len(counts))
    if within == 0:
        return (0.0 if between else 1.0), effects
    return float(fdtrc(len(counts) - 1, len(values) - len(counts), between / within)), effects
