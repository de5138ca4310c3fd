"""Ablations of lines whose effects are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ajuste.design.combinations import subset_name
from ajuste.model.metric import Metric
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import LineEffect
from ajuste_search.ablation.answer import lines_answer
from ajuste_search.ablation.effects import Lines, Rates, ablation, effects_from_values
from ajuste_stats.confidence_sequences import mean_interval
from ajuste_stats.shapley import block_sums
from ajuste_stats.subsets import Subset, of_block, subsets

ELAPSED = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")
RATE = ELAPSED.model_copy(update={"name": "rate", "direction": "higher"})
Game = Callable[[Subset], float]


def names(lines: int) -> tuple[str, ...]:
    return tuple(f"line-{place}" for place in range(lines))


def profile(lines: int) -> Lines:
    return Lines(
        {name: {name: "1"} for name in names(lines)}, [subset_name(subset, names(lines)) for subset in subsets(lines)]
    )


def values(game: Game, lines: int, blocks: int, noise: float = 0.0, seed: int = 1) -> np.ndarray:
    """Logarithms of what each block measures; blocks differ far more than runs scatter."""
    random = np.random.default_rng(seed)
    effects = np.array([game(subset) for subset in subsets(lines)])
    held = np.array([[subset in of_block(lines, block) for subset in subsets(lines)] for block in range(blocks)]).T
    scatter = noise * random.standard_normal(held.shape) + random.standard_normal(blocks)
    return np.where(held, effects[:, None] + scatter, np.nan)


def line_effects(
    game: Game, lines: int, blocks: int = 12, noise: float = 0.002, metric: Metric = ELAPSED
) -> dict[str, LineEffect]:
    of = effects_from_values(
        profile(lines), np.exp(values(game, lines, blocks, noise)), range(blocks), metric, Rates(lines, 1, 0.95), 0.02
    )
    return {effect.line: effect for effect in of}


def additive(**effects: float) -> Game:
    by_number = {int(name.removeprefix("line")): effect for name, effect in effects.items()}
    return lambda subset: sum(effect for line, effect in by_number.items() if line in subset)


@pytest.mark.parametrize("lines", [4, 8])
def test_lines_are_named_by_what_they_do(lines: int) -> None:
    by_line = line_effects(additive(line1=-0.10, line2=0.06), lines)
    roles = {name: effect.role for name, effect in by_line.items() if effect.kind == "line"}
    assert roles == {name: "useless" for name in names(lines)} | {"line-1": "helps", "line-2": "harms"}
    assert by_line["the whole"].verdict == "improves"
    assert by_line["line-1"].part == pytest.approx(2.5, abs=0.3)
    assert by_line["line-1"].sets == {"line-1": "1"}
    assert all(effect.low is not None and effect.low < effect.estimate < effect.high for effect in by_line.values())  # type: ignore[operator]


def test_more_is_a_help_where_higher_is_better() -> None:
    assert line_effects(additive(line1=0.10), 4, metric=RATE)["line-1"].role == "helps"


def test_without_a_better_a_line_matters() -> None:
    assert (
        line_effects(additive(line1=0.1), 4, metric=RATE.model_copy(update={"direction": "none"}))["line-1"].role
        == "matters"
    )


def test_two_lines_that_do_something_only_together_share_it_and_that_is_said() -> None:
    by_line = line_effects(lambda subset: -0.2 * ({0, 3} <= subset), 8)
    for name in ("line-0", "line-3"):
        assert by_line[name].role == "helps"
        assert by_line[name].estimate == pytest.approx(math.exp(-0.1), rel=0.01)
        assert by_line[name].alone.estimate == pytest.approx(1, abs=0.01)
        assert by_line[name].last.estimate == pytest.approx(math.exp(-0.2), rel=0.01)
        assert "it depends on other lines" in by_line[name].remark
    assert not by_line["line-1"].remark


def test_a_line_that_helps_alone_and_harms_beside_another_depends() -> None:
    by_line = line_effects(lambda subset: -0.1 * (0 in subset) + 0.2 * ({0, 1} <= subset) - 0.1 * (1 in subset), 4)
    assert by_line["line-0"].role == "depends"
    assert by_line["line-0"].verdict == "differs"
    assert "alone" in by_line["line-0"].reason


def test_little_noise_that_is_as_large_as_what_matters_leaves_lines_undecided() -> None:
    by_line = line_effects(additive(line1=-0.10), 8, blocks=5, noise=0.05)
    assert by_line["line-5"].role == "undecided"
    assert by_line["line-5"].more_blocks is not None


def test_every_interval_has_the_width_that_its_share_of_the_error_gives() -> None:
    measured = values(additive(), 4, 9, noise=0.01)
    rates = Rates(4, 1, 0.95)
    (of,) = [
        effect
        for effect in effects_from_values(profile(4), np.exp(measured), range(9), ELAPSED, rates, 0.02)
        if effect.line == "line-2"
    ]
    interval = mean_interval(block_sums(measured, range(9), 4)["share"][2], alpha=0.05 / 2 / 4)
    assert (of.low, of.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))
    assert rates.share * 4 + rates.other * 13 == pytest.approx(0.05)


def trials(measured: np.ndarray, lines: Lines, metric: Metric) -> list[Trial]:
    return [
        Trial(
            slot=Slot(block=block, position=place, configuration=name, seed=block),
            status="ok",
            metrics={metric.name: float(value)},
        )
        for block, column in enumerate(measured.T)
        for place, (name, value) in enumerate(zip(lines.configurations, column, strict=True))
        if not np.isnan(value)
    ]


@pytest.mark.parametrize("metrics", [[ELAPSED], [ELAPSED, RATE]])
def test_trials_say_the_same_as_their_values(metrics: Sequence[Metric]) -> None:
    measured = np.exp(values(additive(line1=-0.1), 7, 6, noise=0.01))
    lines = profile(7)
    effects = ablation(lines, trials(measured, lines, ELAPSED), metrics, confidence=0.95, smallest_effect=0.02)
    of_elapsed = [effect for effect in effects if effect.metric == "elapsed"]
    direct = effects_from_values(lines, measured, range(6), ELAPSED, Rates(7, len(metrics), 0.95), 0.02)
    assert [effect.estimate for effect in of_elapsed] == pytest.approx([effect.estimate for effect in direct])
    assert all(effect.verdict == "undecided" and effect.blocks == 0 for effect in effects if effect.metric == "rate")


def test_figures_that_are_zero_are_compared_by_differences() -> None:
    measured = np.where(np.isnan(values(additive(), 4, 6)), np.nan, 0.0)
    measured[1:] += 3.0
    effects = effects_from_values(profile(4), measured, range(6), ELAPSED, Rates(4, 1, 0.95), 0.02)
    assert {effect.scale for effect in effects} == {"difference"}


def test_the_answer_says_what_the_whole_does_and_which_lines_do_it() -> None:
    answer = lines_answer(list(line_effects(additive(line1=-0.10, line2=0.06), 4).values()), [ELAPSED])
    assert answer.startswith("Elapsed time: the whole profile improves, −3.9")
    assert "line-1 (−9.5" in answer
    assert "are useless for this workload" in answer
    assert ") harms" in answer


def test_the_answer_shares_out_the_whole_where_no_line_acts_against_it() -> None:
    answer = lines_answer(list(line_effects(additive(line1=-0.15, line3=-0.05), 4, noise=1e-6).values()), [ELAPSED])
    assert "line-1 (75 % of that) and line-3 (25 % of that) help" in answer


def test_lines_of_a_profile_are_not_useless_where_rounding_hides_them() -> None:
    """0.096 s with the profile and 0.104 s without, all printed as 0.10."""
    parts = ("a", "b")
    lines = Lines({name: {name: "1"} for name in parts}, [subset_name(subset, parts) for subset in subsets(2)])
    printed, metric = np.full((4, 400), 0.10), ELAPSED.model_copy(update={"resolution": 0.01})
    effects = effects_from_values(lines, printed, range(400), metric, Rates(2, 1, 0.95), 0.02)
    assert [effect.role for effect in effects] == ["undecided"] * 3
    assert effects[0].low is not None
    assert effects[0].low < 0.096 / 0.104
    digits = np.exp(np.random.default_rng(3).normal(math.log(0.1), 0.001, (4, 40)))
    effects = effects_from_values(lines, digits, range(40), ELAPSED, Rates(2, 1, 0.95), 0.02)
    assert [effect.role for effect in effects] == ["useless"] * 3
