"""Bimodality: whether the values of a configuration fall into two groups.

Hartigan's dip test (Hartigan and Hartigan 1985, Annals of Statistics 13; the ``diptest`` package) on each
configuration, Bonferroni over them. Values that are alike because of the figure's steps are spread evenly over a step
first, or else every count would look like many groups.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from diptest import diptest

from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import error_of_shape
from ajuste.analysis.diagnostics.residuals import Floats, Residuals

FEWEST: Final = 20


def bimodality(residuals: Residuals) -> Finding | None:
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
    return Finding(
        kind="bimodality",
        measures="distance of the two groups",
        value=float(np.expm1(apart)) if residuals.scale == "ratio" else apart,
        p_value=min(1.0, p_value * len(tested)),
        naive_error=error_of_shape(own),
        configuration=name,
        says=f"The values of {name} fall into two groups, {residuals.say(apart)} apart; {100 * share:.0f} % are in the "
        f"upper one. A mean describes neither.",
        why="The verdict is about the mean over both groups, and its interval is as wide as they make it.",
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
