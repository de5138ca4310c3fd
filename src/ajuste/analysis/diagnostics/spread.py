"""Unequal variance: whether some configurations vary more than others.

Brown and Forsythe's test (1974, JASA 69): analysis of variance of the distances from the median.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ajuste.analysis.diagnostics.carry_over import variance_between
from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import error_of_unequal_spread
from ajuste.analysis.diagnostics.residuals import Residuals
from ajuste.analysis.wording import number

FEWEST_EACH: Final = 8


def spread(residuals: Residuals) -> Finding | None:
    """How much the standard deviations differ; ``None`` with fewer than ``FEWEST_EACH`` values of any."""
    groups = residuals.by_configuration
    if len(groups) < 2 or min(map(len, groups)) < FEWEST_EACH:
        return None
    distances = np.concatenate(residuals.from_median)
    p_value, _ = variance_between(distances, np.repeat(np.arange(len(groups)), [len(own) for own in groups]))
    deviations = [float(np.std(own, ddof=1)) for own in groups]
    widest, least = int(np.argmax(deviations)), int(np.argmin(deviations))
    ratio = deviations[widest] / deviations[least] if deviations[least] > 0 else float("inf")
    times = "only the former varies at all" if ratio == float("inf") else f"{number(ratio)} times as much"
    return Finding(
        kind="unequal variance",
        measures="largest standard deviation over the smallest",
        value=ratio,
        p_value=p_value,
        naive_error=error_of_unequal_spread(min(ratio, 1e6)),
        configuration=residuals.names[widest],
        says=f"{residuals.names[widest]} varies more than {residuals.names[least]}: {times}.",
        why="The interval is made from the differences themselves, and supposes nothing of the single spreads.",
        spoils=ratio >= 2,
    )
