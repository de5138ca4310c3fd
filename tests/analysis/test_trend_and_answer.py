from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ajuste.analysis.answer import answer
from ajuste.analysis.pairs import by_round, clean_trials
from ajuste.analysis.summary import measured
from ajuste.analysis.trend import trend
from ajuste.analysis.verdict import judge
from ajuste.model.metric import Metric
from ajuste.model.trial import Factor

LEVELS = ("750000", "7500000", "75000000", "750000000")


def noisy(mean: float, spread: float, blocks: int = 10) -> list[float]:
    noise = np.random.default_rng(int(mean)).normal(0, spread, blocks)
    return [float(round(mean + e)) for e in noise]


def ask(configurations: Any, trials: Any, metric: Metric, means: dict[str, list[float]]) -> tuple[Any, str]:
    levels = tuple(means)
    made = configurations(*levels)
    data = trials({c.name: means[c.levels["knob"]] for c in made}, metric=metric.name)
    factor = Factor(name="knob", levels=levels, baseline=levels[0])
    fitted = trend([factor], made, data, metric, 0.05 / len(levels))
    verdicts = judge(made, data, [metric])
    text = answer(
        [metric], verdicts, measured(made, data), {metric.name: fitted} if fitted else {}, smallest_effect=0.05
    )
    return fitted, text


def test_a_clear_fall_from_level_to_level_is_said_with_its_figures(
    configurations: Any, trials: Any, switches: Metric
) -> None:
    means = {level: noisy(mean, 1) for level, mean in zip(LEVELS, (135, 68, 27, 1), strict=True)}
    fitted, text = ask(configurations, trials, switches, means)
    assert (fitted.direction, fitted.certain) == ("falls", True)
    assert text.startswith("Involuntary switches: each increase of knob lowers it: 135 at 750000, ")
    assert "Every step is statistically significant." in text
    for mean in (np.mean(values) for values in means.values()):
        assert f"{mean:.3g}" in text


def test_levels_are_ordered_by_number_not_by_the_order_given(
    configurations: Any, trials: Any, switches: Metric
) -> None:
    means = {"9": noisy(50, 1), "10": noisy(70, 1), "1": noisy(30, 1)}
    fitted, _ = ask(configurations, trials, switches, means)
    assert fitted.levels == ("1", "9", "10")
    assert (fitted.direction, fitted.certain) == ("rises", True)


def test_a_fall_with_an_uncertain_step_is_not_claimed(configurations: Any, trials: Any, switches: Metric) -> None:
    base = [100.0, 110, 90, 105, 95, 101]
    means = {"1": base, "2": [v - 0.4 + (-1) ** i * 9 for i, v in enumerate(base)], "3": [v - 60 for v in base]}
    fitted, text = ask(configurations, trials, switches, means)
    assert fitted.direction == "falls"
    assert not fitted.certain
    assert "the average falls as knob rises" in text
    assert "Not every step is statistically significant." in text
    assert "each increase" not in text


def test_up_and_down_is_no_trend(configurations: Any, trials: Any, switches: Metric) -> None:
    means = {"1": noisy(100, 1), "2": noisy(50, 1), "3": noisy(80, 1)}
    fitted, text = ask(configurations, trials, switches, means)
    assert fitted.direction is None
    assert "level" not in text
    assert "against the baseline: knob=2 differs (−" in text


@pytest.mark.parametrize("levels", [("1", "2"), ("a", "b", "c")])
def test_two_levels_or_words_have_no_trend(
    configurations: Any, trials: Any, switches: Metric, levels: tuple[str, ...]
) -> None:
    fitted, _ = ask(configurations, trials, switches, {level: noisy(100, 1) for level in levels})
    assert fitted is None


def test_no_difference_is_answered_as_equivalent(configurations: Any, trials: Any, elapsed: Metric) -> None:
    base = [1.0, 1.1, 0.9, 1.05, 1.02, 0.97] * 5
    _, text = ask(configurations, trials, elapsed, {"1": base, "2": [v * 1.001 for v in base]})
    assert text == "Elapsed time, against the baseline: knob=2 is equivalent within ±5 %."


def test_undecided_is_answered_as_undecided(configurations: Any, trials: Any, elapsed: Metric) -> None:
    base = [1.0, 1.1, 0.9, 1.05, 1.02, 0.97]
    _, text = ask(configurations, trials, elapsed, {"1": base, "2": list(reversed(base))})
    assert text.startswith("Elapsed time, against the baseline: knob=2, about ")
    assert text.endswith("more blocks (undecided).")


def test_boots_are_counted_in_rounds_not_in_blocks(configurations: Any, trials: Any, elapsed: Metric) -> None:
    base = [1.0, 1.1, 0.9, 1.05, 1.02, 0.97, 1.01, 1.03]
    made = configurations("1", "2")
    data = trials({"knob=1": base, "knob=2": list(reversed(base))})
    by_block, by_boot = (judge(made, grouped, [elapsed]) for grouped in (data, by_round(clean_trials(data), size=2)))
    (verdict,) = by_boot
    assert verdict.blocks == 4
    assert verdict.about_more == f"about {verdict.more_blocks} more rounds of boots"
    assert by_block[0].about_more == f"about {by_block[0].more_blocks} more blocks"
    text = answer([elapsed], by_boot, measured(made, data), {}, smallest_effect=0.05)
    assert text == f"Elapsed time, against the baseline: knob=2, {verdict.about_more} (undecided)."


def test_a_grid_is_counted_and_its_ends_are_named(configurations: Any, trials: Any, elapsed: Metric) -> None:
    base = [1.0, 1.1, 0.9, 1.05, 1.02, 0.97, 1.01, 0.99] * 4
    factors = {"a": 1.0, "b": 1.2, "c": 0.7, "d": 1.3, "e": 0.8, "f": 1.0001}
    made = {k: [v * f * (1 + 0.001 * (-1) ** i) for i, v in enumerate(base)] for k, f in factors.items()}
    _, text = ask(configurations, trials, elapsed, made)
    assert "of 5 configurations against the baseline: 2 better, 2 worse and 1 equivalent within ±5 %" in text
    assert "lowest knob=c, −30 %" in text
    assert "highest knob=d, +30 %" in text


def test_one_configuration_is_only_described(configurations: Any, trials: Any, elapsed: Metric) -> None:
    _, text = ask(configurations, trials, elapsed, {"1": [2.0, 4.0]})
    assert text == "Elapsed time of knob=1: 3 s on average of 2 runs, too few for an interval."
