"""Why a difference is no evidence: beside its standard error, beside chance, and how many values it would have taken.

The numbers of values are those of the t test's power: Cohen 1988, "Statistical Power Analysis for the Behavioral
Sciences", 2nd ed., section 2.4; exact by the noncentral t distribution (Johnson and Welch 1940, "Applications of the
non-central t-distribution", Biometrika 31).
"""

from __future__ import annotations

import math
from typing import Final

from scipy.special import nctdtr, ndtri, stdtrit

from ajuste.analysis.effects import FixedContrast
from ajuste.model.metric import Scale
from ajuste.model.wording import amount, change, number, percent

POWER: Final = 0.9
MOST_VALUES: Final = 1_000_000
"""Beyond this many values a prediction is not worth giving."""


def values_needed(difference: float, spreads: tuple[float, ...], alpha: float, power: float = POWER) -> int | None:
    """How many values of each sample tell ``difference`` from none with this ``power``, two-sided at ``alpha``.

    ``spreads`` are the standard deviations of the two samples, or the one of paired differences, in the unit of
    ``difference``. ``None`` beyond ``MOST_VALUES``.
    """
    variance = math.fsum(spread**2 for spread in spreads)
    if difference == 0 or variance == 0:
        return None
    z = float(ndtri(1 - alpha / 2) + ndtri(power))
    normal = variance * (z / difference) ** 2  # what it would take were the spread known
    if normal > MOST_VALUES:
        return None
    share = variance**2 / math.fsum(spread**4 for spread in spreads)
    n = max(2, math.floor(normal))
    while _power(difference, variance, share * (n - 1), n, alpha) < power:
        n += 1
    return n


def _power(difference: float, variance: float, freedom: float, n: int, alpha: float) -> float:
    apart = abs(difference) / math.sqrt(variance / n)
    critical = float(stdtrit(freedom, 1 - alpha / 2))
    missed = float(nctdtr(freedom, apart, critical))
    return 1.0 if math.isnan(missed) else 1 - missed  # not a number where it is too small for one


def not_evidence(
    contrast: FixedContrast,
    spreads: tuple[float, ...],
    n: tuple[int, int],
    alpha: float,
    *,
    scale: Scale,
    unit: str,
    estimate: float | None,
) -> str:
    """Two sentences on a difference that is known no better than this. ``estimate`` is it as a ratio or a difference;
    one of ``spreads`` is of pairs.
    """
    paired = len(spreads) == 1
    error = f"{number(100 * contrast.error)} %" if scale == "ratio" else amount(contrast.error, unit)
    of = f"{number(n[0])} blocks" if paired else f"{number(n[0])} and {number(n[1])} values"
    times = number(abs(contrast.difference) / contrast.error)
    chance = float(f"{contrast.p_value:.2g}")
    first = (
        f"The difference, {change(estimate, scale, unit)}, is {times} times its "
        f"standard error ({error}): from {of} that spread as these do, chance alone gives one at least as large "
        f"in {percent(chance)} of cases (p = {chance:g})."
    )
    return f"{first} {_taken(contrast.difference, spreads, alpha)}"


def _taken(difference: float, spreads: tuple[float, ...], alpha: float) -> str:
    needed = values_needed(difference, spreads, alpha)
    what = "blocks" if len(spreads) == 1 else "values of each"
    asked = f"Evidence begins below p = {float(f'{alpha:.2g}'):g} here"
    if difference == 0:
        return f"{asked}, and no number of {what} shows a difference of 0."
    count = f"more than {number(MOST_VALUES)}" if needed is None else f"about {number(needed)}"
    return (
        f"{asked}; it would have taken {count} {what} to see a difference of this size in nine of ten such comparisons."
    )
