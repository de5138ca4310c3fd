"""Unequal variance: whether some configurations vary more than others.

Brown and Forsythe's test (1974, JASA 69): analysis of variance of the distances from the median.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from diptest import diptest

from ajuste.analysis.diagnostics.naive import error_of_shape, error_of_unequal_spread
from ajuste.analysis.diagnostics.order import variance_between
from ajuste.analysis.diagnostics.residuals import DiagnosticFinding, Floats, Residuals
from ajuste.analysis.outliers import FAR, MAD_SCALE, far_places, median
from ajuste.model.wording import number

FEWEST_EACH: Final = 8


def spread(residuals: Residuals) -> DiagnosticFinding | None:
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
    return DiagnosticFinding(
        kind="unequal variance",
        measures="largest standard deviation over the smallest",
        value=ratio,
        p_value=p_value,
        naive_error=error_of_unequal_spread(min(ratio, 1e6)),
        configuration=residuals.names[widest],
        says=f"{residuals.names[widest]} varies more than {residuals.names[least]}: {times}.",
        why="The interval is computed from the differences, so it assumes nothing about the single spreads.",
        spoils=ratio >= 2,
    )


# Bimodality: whether the values of a configuration fall into two groups.
#
# Hartigan's dip test (Hartigan and Hartigan 1985, Annals of Statistics 13; the ``diptest`` package) on each
# configuration, Bonferroni over them. Values that are alike because of the figure's steps are spread evenly over a
# step first, or else every count would look like many groups.


FEWEST: Final = 20


def bimodality(residuals: Residuals) -> DiagnosticFinding | None:
    """The configuration whose values look most like two groups; ``None`` with too few values of each."""
    tested = [
        (float(diptest(spread_ties(own))[1]), place)
        for place, own in enumerate(residuals.by_configuration)
        if len(own) >= FEWEST and float(np.ptp(own)) > 0
    ]
    if not tested:
        return None
    p_value, place = min(tested)
    own, name = residuals.by_configuration[place], residuals.names[place]
    share, apart = two_groups(own)
    return DiagnosticFinding(
        kind="bimodality",
        measures="distance between the two groups",
        value=float(np.expm1(apart)) if residuals.scale == "ratio" else apart,
        p_value=min(1.0, p_value * len(tested)),
        naive_error=error_of_shape(own),
        configuration=name,
        says=f"The values of {name} fall into two groups, {residuals.say(apart)} apart; {100 * share:.0f} % are in the "
        f"upper one. A mean describes neither.",
        why="The verdict is about the mean over both groups; its interval includes their distance.",
        spoils=True,
    )


def spread_ties(values: Floats) -> Floats:
    """Equal values spread evenly over the room to their neighbours."""
    ordered = np.sort(values)
    different, counts = np.unique(ordered, return_counts=True)
    if len(different) == len(ordered) or len(different) < 2:
        return ordered
    gaps = np.diff(different)
    room = np.minimum(np.r_[gaps[0], gaps], np.r_[gaps, gaps[-1]])
    place = np.arange(len(ordered)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ordered + np.repeat(room, counts) * ((place + 0.5) / np.repeat(counts, counts) - 0.5)


def two_groups(values: Floats) -> tuple[float, float]:
    """The share of the upper of two groups and how far their means are apart, split where the groups are tightest
    (Otsu 1979).
    """
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)[:-1]
    apart = (ordered.sum() - sums) / (len(ordered) - below) - sums / below
    best = int(np.argmax(apart**2 * below * (len(ordered) - below)))
    return float((len(ordered) - below[best]) / len(ordered)), float(apart[best])


# Outliers: single values far from all others of their configuration (see ``analysis.outliers`` for the threshold).


FAR_VALUES_FEWEST_EACH: Final = 10
WIDER: Final = 1.2
"""From here on they matter: so many times wider is a standard deviation with them."""


def far_values(residuals: Residuals) -> DiagnosticFinding | None:
    """How many values are far from all others; ``None`` with too few values of each configuration."""
    groups = residuals.by_configuration
    if min(map(len, groups)) < FAR_VALUES_FEWEST_EACH:
        return None
    # Of many configurations with few values some have a small spread by chance: what is far must be so by that of all.
    usual = MAD_SCALE * median(np.concatenate(residuals.from_median))
    far = [[place for place in far_places(away) if away[place] > FAR * usual] for away in residuals.from_median]
    worst = max(range(len(groups)), key=lambda place: len(far[place]))
    count = sum(map(len, far))
    own, name = groups[worst], residuals.names[worst]
    without = np.delete(own, far[worst])
    wider = float(np.std(own) / np.std(without)) if len(without) > 1 and np.std(without) > 0 else 1.0
    are = "value is" if count == 1 else "values are"
    return DiagnosticFinding(
        kind="outliers",
        measures="values far from all others",
        value=float(count),
        certain=count > 0,
        naive_error=error_of_shape(own) if count else None,
        configuration=name if count else "",
        says=f"{number(count)} of {number(len(residuals))} {are} more than {FAR:g} times further out than usual, most "
        f"of them under {name}, where they make the standard deviation {number(wider)} times as large.",
        why="They stay in every figure and widen the intervals.",
        spoils=wider >= WIDER,
    )
