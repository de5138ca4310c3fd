"""Outliers: single values far from all others of their configuration (see ``analysis.outliers`` for the threshold)."""

from __future__ import annotations

from typing import Final

import numpy as np

from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import error_of_shape
from ajuste.analysis.diagnostics.residuals import Residuals
from ajuste.analysis.outliers import FAR, MAD_SCALE, far_places, median
from ajuste.analysis.wording import number

FEWEST_EACH: Final = 10
WIDER: Final = 1.2
"""From here on they matter: so many times wider is a standard deviation with them."""


def far_values(residuals: Residuals) -> Finding | None:
    """How many values are far from all others; ``None`` with too few values of each configuration."""
    groups = residuals.by_configuration
    if min(map(len, groups)) < FEWEST_EACH:
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
    return Finding(
        kind="outliers",
        measures="values far from all others",
        value=float(count),
        certain=count > 0,
        naive_error=error_of_shape(own) if count else None,
        configuration=name if count else "",
        says=f"{number(count)} of {number(len(residuals))} {are} more than {FAR:g} times further out than usual, most "
        f"of them under {name}, where they make the standard deviation {number(wider)} times as large.",
        why="They are kept and part of every figure: they widen the intervals.",
        spoils=wider >= WIDER,
    )
