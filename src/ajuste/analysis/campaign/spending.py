"""One error budget over all proposals of a campaign: e-LOND (Xu and Ramdas 2024, "Online multiple testing with
e-values", AISTATS, arXiv:2311.06412).

The test of number t rejects where its e-value is at least 1/α_t, with α_t = α·γ_t·(rejections before + 1). The false
discovery rate is at most α, however e-values depend on each other and on what was proposed because of them: each needs
a mean of at most 1 given all before it. A campaign says beforehand how many tests there may be, and γ_t is an equal
share for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorBudget:
    """``alpha`` is the false discovery rate of the whole, ``tests`` how many there may be."""

    alpha: float
    tests: int

    def level(self, tested: int, promoted: int) -> float:
        """The level of the next test after ``tested`` ones with ``promoted`` promotions; 0 if the budget is spent."""
        return self.alpha / self.tests * (promoted + 1) if tested < self.tests else 0.0

    def promoted(self, e_values: Iterable[float]) -> list[bool]:
        """Of each test in a row whether it is a promotion."""
        found: list[bool] = []
        for value in e_values:
            level = self.level(len(found), sum(found))
            found.append(is_promoted(value, level))
        return found


def is_promoted(e_value: float, level: float) -> bool:
    """Whether so much evidence is enough at that level."""
    return level > 0 and e_value * level >= 1
