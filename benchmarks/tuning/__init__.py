"""Good configurations in few trials: Ajuste's samplers beside others, and what is reported beside what is true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.comparison import Comparison
from benchmarks.tuning.curse import curse
from benchmarks.tuning.peers import METHODS, Method, smac_method
from benchmarks.tuning.surfaces import RECORDED_NAME, SYNTHETIC, Surface, recorded

TRIALS: Final = 25
REPEATS: Final = 20
WANTED: Final = 18
WITHIN: Final = 1.01
"""Multiple of the true best that still counts as found."""


def measure() -> Iterator[Comparison]:
    """Search the recorded surface of hackbench-granularity, if there is one, synthetic ones, and one with noise."""
    methods = dict(METHODS)
    smac = smac_method()
    if smac is None:
        print("SMAC3 is not installed (uv sync --group bench): it is left out")
    else:
        methods["SMAC3"] = smac
    surface = recorded()
    if surface is None:
        print("no surface is recorded (python -m benchmarks.tuning.record): only synthetic ones are searched")
    surfaces = [*([surface] if surface else []), *SYNTHETIC]
    yield from (efficiency(searched, methods) for searched in surfaces)
    yield from curse()


def efficiency(surface: Surface, methods: dict[str, Method], repeats: int = REPEATS) -> Comparison:
    """Compare how far the best of ``TRIALS`` points is above the true best, for every method, in ``repeats`` runs."""
    best = min(surface.values.values())
    figures = {
        name: [
            100 * (min(surface.values[p] for p in method(surface, seed, TRIALS)) / best - 1) for seed in range(repeats)
        ]
        for name, method in methods.items()
    }
    hits = {name: sum(value <= 100 * (WITHIN - 1) for value in values) for name, values in figures.items()}
    within = sum(value <= WITHIN * best for value in surface.values.values())
    if surface.name == RECORDED_NAME:
        goal, wanted = f"ajuste within 1 % in {WANTED} of {REPEATS}", WANTED * repeats / REPEATS
    else:
        goal, wanted = "nothing finds it oftener than ajuste", max(hits.values())
    repeats_by_name = ", ".join(f"{name} {count}" for name, count in hits.items())
    return Comparison(
        name=f"tuning-{surface.name}",
        what=f"above the true best after {TRIALS} trials on {surface.title}, of whose {len(surface.values)} points "
        f"{within} are within 1 % of it; found in {repeats} repeats: {repeats_by_name}",
        unit="%",
        figures=figures,
        goal=goal,
        reached=hits["ajuste"] >= wanted,
    )
