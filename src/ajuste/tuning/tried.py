"""What a sampler is told: a point, what was measured there, and how surely that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ajuste.tuning.space import Point, Row


@dataclass(frozen=True)
class Tried:
    """``values`` has one figure for every objective, smaller is better; ``excess`` how far the point is beyond every
    constraint (0 or less: within it). ``runs`` says how many runs these are means of, ``variances`` how far a single
    run of each objective strays; 0 where nobody knows.
    """

    point: Point
    row: Row
    values: tuple[float, ...]
    variances: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()
    runs: int = 1

    @property
    def allowed(self) -> bool:
        """Whether all constraints seem to hold."""
        return all(excess <= 0 for excess in self.excess)

    @property
    def violation(self) -> float:
        """How far beyond the constraints in all."""
        return sum(max(0.0, excess) for excess in self.excess)


def front(tried: Sequence[Tried]) -> list[Tried]:
    """Those that no other one beats on every objective, the best on the first one first."""
    found = [one for one in tried if not any(_dominates(other, one) for other in tried)]
    return sorted({one.values: one for one in reversed(found)}.values(), key=lambda one: one.values)


def _dominates(one: Tried, other: Tried) -> bool:
    pairs = list(zip(one.values, other.values, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
