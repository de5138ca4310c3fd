"""What a sampler is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ajuste.tuning.space import Point, Space
from ajuste.tuning.tried import Tried

SamplerName = Literal["gp", "tpe", "cmaes", "nsga2", "random", "grid"]


@dataclass(frozen=True)
class Task:
    """What a sampler is made for: everything random follows from ``seed``. ``allowed`` is how many points it will be
    asked for in all, ``objectives`` and ``constraints`` count them.
    """

    space: Space
    seed: int
    allowed: int
    objectives: int = 1
    constraints: int = 0


class Sampler(Protocol):
    """Suggests points. May remember what it suggested, and is asked in the order in which a run went, so that an
    interrupted run goes on as it would have.
    """

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        """The next points, ``count`` or fewer where no more are left; each is new. ``tried`` is everything so far, and
        ``taken`` are points that are known to become something that was tried.
        """
        ...
