"""Surfaces of simulated studies with a known shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ajuste.analysis.block_values import Promise
from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.verdict import judge
from ajuste.design.combinations import combinations
from ajuste.model.metric import Metric
from ajuste.model.surface import Surface
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste_search.surface.surfaces import surfaces

ELAPSED = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")
SWITCHES = Metric(name="voluntary-switches", title="switches", unit="", direction="none", scale="difference")
M = Factor(name="m", levels=("16", "1", "4", "8", "30"), baseline="1")
W = Factor(name="w", levels=("1", "8", "30"), baseline="1")
MODE = Factor(name="mode", levels=("pipe", "socket"), baseline="pipe")

PROMISE = Promise(confidence=0.95, smallest_effect=0.05)
Truth = Callable[[dict[str, str]], float]


def valley(levels: dict[str, str]) -> float:
    """Falls to m = 8, flat from there; best at w = 8."""
    return 1 + max(0.0, np.log(8 / float(levels["m"]))) / 4 + (levels.get("w", "8") != "8") * 0.1


def flat(levels: dict[str, str]) -> float:
    return 2.0


def measured(
    factors: Sequence[Factor],
    truth: Truth,
    *,
    noise: float = 0.003,
    blocks: int = 6,
    seed: int = 1,
    left_out: Sequence[str] = (),
) -> tuple[Surface, ...]:
    random = np.random.default_rng(seed)
    baseline = tuple(factor.baseline for factor in factors)
    configurations = [
        Configuration(
            name=",".join(levels),
            levels=dict(zip((f.name for f in factors), levels, strict=True)),
            baseline=levels == baseline,
        )
        for levels in combinations(factors, "all")
    ]
    trials = [
        Trial(
            slot=Slot(block=block, position=position, configuration=configurations[place].name, seed=1),
            status="ok",
            metrics={
                "elapsed": (1 + block / 7) * truth(configurations[place].levels) * np.exp(random.normal(0, noise)),
                "voluntary-switches": 1e5 / truth(configurations[place].levels) ** 20 + random.integers(0, 9),
            },
        )
        for block in range(blocks)
        for position, place in enumerate(random.permutation(len(configurations)))
        if configurations[place].name not in left_out
    ]
    clean = clean_trials(trials)
    verdicts = judge(configurations, clean, [ELAPSED])
    return surfaces(factors, configurations, clean, [ELAPSED], [SWITCHES], verdicts, PROMISE)


def shapes(surface: Surface, along: str, **fixed: str) -> list[tuple[str, str, str]]:
    curve = next(c for c in surface.curves if c.along == along and c.fixed == fixed)
    return [(region.shape, region.first, region.last) for region in curve.regions]


def test_two_factors() -> None:
    elapsed, switches = measured([M, W], valley)
    assert [axis.levels for axis in elapsed.axes] == [("1", "4", "8", "16", "30"), ("1", "8", "30")]
    assert [axis.scale for axis in elapsed.axes] == ["log", "log"]
    assert shapes(elapsed, "m", w="8") == [("fast fall", "1", "8"), ("flat", "8", "30")]
    assert set(elapsed.best_set) == {"8,8", "16,8", "30,8"}
    assert elapsed.best in elapsed.best_set
    assert (elapsed.deciding, switches.deciding, switches.best, switches.best_set) == (True, False, None, ())
    assert switches.scale == "ratio"  # they span decades


def test_values_are_those_of_the_verdicts_and_their_intervals_hold_the_truth() -> None:
    (elapsed, _) = measured([M, W], valley)
    by_name = {point.configuration: point for point in elapsed.points}
    mean = float(np.mean([1 + block / 7 for block in range(6)]))
    assert by_name["1,1"].value / by_name["8,8"].value == pytest.approx(1.1 + np.log(8) / 4, rel=0.01)
    for point in elapsed.points:
        assert point.low is not None
        assert point.high is not None
        m, w = point.configuration.split(",")
        assert point.low < point.value < point.high
        assert point.value == pytest.approx(mean * valley({"m": m, "w": w}), rel=0.01)


def test_one_factor_has_one_curve() -> None:
    (elapsed, _) = measured([M], valley)
    assert len(elapsed.curves) == 1
    assert shapes(elapsed, "m") == [("fast fall", "1", "8"), ("flat", "8", "30")]
    change, rest = (region.change for region in elapsed.curves[0].regions)
    assert change == pytest.approx(1 / (1 + np.log(8) / 4), rel=0.02)
    assert rest == pytest.approx(1, abs=0.02)


def test_a_flat_surface_says_so() -> None:
    (elapsed, _) = measured([M, W], flat, blocks=30)
    assert elapsed.flat
    assert elapsed.within is not None
    assert 0 < elapsed.within < 0.05
    assert len(elapsed.best_set) == 15
    assert all([region.shape for region in curve.regions] == ["flat"] for curve in elapsed.curves if curve.regions)


def test_other_factors_have_surfaces_of_their_own() -> None:
    all_surfaces = measured([M, MODE, W], lambda levels: valley(levels) * (1 + (levels["mode"] == "socket")))
    elapsed = [surface for surface in all_surfaces if surface.metric == "elapsed"]
    assert [surface.fixed for surface in elapsed] == [{"mode": "pipe"}, {"mode": "socket"}]
    assert all(name.split(",")[1] == "socket" for name in elapsed[1].best_set)


def test_noise_makes_no_regions_however_it_is_spread() -> None:
    """Regions may appear anywhere in one of 20 studies; in this one the noise is as large as what matters."""
    wrong = 0
    for seed in range(12):
        (elapsed, _) = measured([M, W], flat, noise=0.05, seed=seed)
        wrong += any([r.shape for r in curve.regions] not in (["flat"], []) for curve in elapsed.curves)
    assert wrong <= 2


def test_levels_whose_few_trials_are_of_one_mode_by_chance_make_no_regions() -> None:
    """Two in five trials are 8 % slower: a level that has none of them, or only such, seems to have no noise."""
    levels = tuple(str(level) for level in range(1, 9))
    factor = Factor(name="m", levels=levels, baseline="1")
    made = [Configuration(name=level, levels={"m": level}, baseline=level == "1") for level in levels]
    random, wrong = np.random.default_rng(2), 0
    for _ in range(150):
        values = np.exp(0.08 * (random.random((4, 8)) < 0.4) + 0.005 * random.standard_normal((4, 8)))
        trials = [
            Trial(
                slot=Slot(block=block, position=place, configuration=level, seed=1),
                status="ok",
                metrics={"elapsed": float(values[block, place])},
            )
            for block in range(4)
            for place, level in enumerate(levels)
        ]
        (surface,) = surfaces([factor], made, clean_trials(trials), [ELAPSED], [], [], Promise(0.95, 0.01))
        wrong += [region.shape for curve in surface.curves for region in curve.regions] != ["flat"]
    assert wrong <= 7  # 5 % are 7.5


def test_a_part_of_a_grid() -> None:
    (elapsed, _) = measured([M, W], valley, left_out=("4,30", "16,30", "30,30", "8,1"))
    assert len(elapsed.points) == 11
    assert elapsed.best in {"8,8", "16,8", "30,8"}
    assert {(curve.along, curve.fixed.get("w")) for curve in elapsed.curves} == {("m", "1"), ("m", "8")}


@pytest.mark.parametrize(
    "factors",
    [
        [Factor(name="m", levels=("1", "2", "3", "4"), baseline="1")],
        [Factor(name="m", levels=("1", "2", "3", "4", "auto"), baseline="1")],
        [MODE, Factor(name="one", levels=("1",), baseline="1")],
    ],
)
def test_no_surface_without_enough_numbers(factors: list[Factor]) -> None:
    assert measured(factors, flat) == ()


def test_one_block_has_values_and_no_regions() -> None:
    (elapsed, _) = measured([M, W], valley, blocks=1)
    assert all(point.low is None for point in elapsed.points)
    assert all(curve.regions == () for curve in elapsed.curves)
    assert len(elapsed.best_set) == 15
