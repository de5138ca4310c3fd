"""Surfaces of which every point is known: one that was measured, and made-up ones of other shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from ajuste.model.trial import Factor
from ajuste_search.tuning.sampler import Point, Space, build_space

RECORDED: Final = Path(__file__).parent / "hackbench-surface.json"
RECORDED_NAME: Final = "recorded"
SIDE: Final = 20


@dataclass(frozen=True)
class Surface:
    """``values`` has a positive figure for every point of the space of ``factors``; smaller is better."""

    name: str
    title: str
    factors: tuple[Factor, ...]
    values: Mapping[Point, float]

    @cached_property
    def space(self) -> Space:
        return build_space(self.factors)


def recorded(path: Path = RECORDED) -> Surface | None:
    """The surface that ``benchmarks.tuning.record`` wrote; ``None`` if there is none."""
    if not path.exists():
        return None
    document = json.loads(path.read_text())
    factors = tuple(Factor.model_validate(table) for table in document["factors"])
    sizes = [len(factor.levels) for factor in factors]
    values = {tuple(map(int, point)): document["values"][place] for place, point in enumerate(np.ndindex(*sizes))}
    return Surface(RECORDED_NAME, "hackbench-granularity (recorded)", factors, values)


def _made(name: str, title: str, shape: Callable[[float, float], float]) -> Surface:
    levels = tuple(str(round(10**6 * 30 ** (place / (SIDE - 1)))) for place in range(SIDE))
    factors = tuple(Factor(name=axis, levels=levels, baseline=levels[0]) for axis in ("m", "w"))
    ends = np.linspace(0, 1, SIDE)
    values: dict[Point, float] = {
        (a, b): 1 + shape(float(ends[a]), float(ends[b])) for a in range(SIDE) for b in range(SIDE)
    }
    return Surface(name, title, factors, values)


SYNTHETIC: Final = (
    _made("bowl", "a bowl", lambda x, y: 0.8 * ((x - 0.7) ** 2 + 1.5 * (y - 0.35) ** 2)),
    _made("valley", "a curved valley", lambda x, y: 1.2 * (y - x * x) ** 2 + 0.15 * (x - 0.8) ** 2),
    _made(
        "two-basins",
        "two basins, the narrower one being deeper",
        lambda x, y: (
            0.5
            - 0.3 * np.exp(-8 * ((x - 0.2) ** 2 + (y - 0.7) ** 2))
            - 0.5 * np.exp(-30 * ((x - 0.75) ** 2 + (y - 0.25) ** 2))
        ),
    ),
)
