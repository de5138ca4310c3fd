"""Evidence by signs: right whatever the noise does in time, and honest about what few seeds show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import typer
from numpy.typing import NDArray

from ajuste.analysis.verdict import judge
from ajuste.cli.main import whole_application
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.report.verdicts import verdict_text
from ajuste_stats.decision import trials_needed
from ajuste_stats.sign_intervals import (
    blind_spot,
)


def test_what_many_blocks_cannot_see_is_not_nothing(configurations: Any, trials: Any, elapsed: Metric) -> None:
    alike = trials({"knob=1": [1.0, 1.1] * 400, "knob=2": [1.0, 1.1] * 400})
    (verdict,) = judge(configurations("1", "2"), alike, [elapsed])
    assert "fewer than 0.4 % of trials" in verdict.cannot_see


@pytest.mark.parametrize("order_matters", [False, True])
@pytest.mark.parametrize(("seeds", "word"), [(3, "undecided"), (28, "undecided"), (29, "equivalent")])
def test_a_few_trials_alike_are_not_equivalent_in_a_guest_or_on_the_host(
    configurations: Any, trials: Any, elapsed: Metric, seeds: int, word: str, order_matters: bool
) -> None:
    alike = trials({"knob=1": [1.0] * seeds, "knob=2": [1.0] * seeds})
    (verdict,) = judge(configurations("1", "2"), alike, [elapsed], order_matters=order_matters)
    assert verdict.verdict == word
    assert verdict.unseen == pytest.approx(blind_spot(seeds, 0.95))
    assert str(seeds) in verdict.cannot_see
    assert verdict.few_trials == (word == "undecided" and seeds >= 6)
    if verdict.few_trials:
        assert verdict_text(verdict, 0.05) == f"undecided: within ±5 % in {seeds} blocks, too few"
    if word == "undecided" and seeds > 6:
        assert ("trials" if order_matters else "seeds") in verdict.reason
        assert verdict.more_blocks == trials_needed() - seeds


def test_from_and_to_agree_with_the_percentage(configurations: Any, trials: Any, elapsed: Metric) -> None:
    base, other = [1.0, 10.0] * 4, [1.3, 14.0, 1.4, 13.0, 1.3, 13.0, 1.4, 14.0]
    measured = trials({"knob=1": base, "knob=2": other})
    (verdict,) = judge(configurations("1", "2"), measured, [elapsed], order_matters=False)
    assert verdict.estimate is not None
    assert verdict.old == pytest.approx(math.sqrt(10))
    assert verdict.new == pytest.approx(math.sqrt(10) * verdict.estimate)


def test_typical_and_mean_trials_that_disagree_are_no_improvement(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    random = np.random.default_rng(3)
    base = 1 + 0.01 * random.random(40)
    other = 0.9 * base
    other[[7, 23]] = 6.0
    measured = trials({"knob=1": base.tolist(), "knob=2": other.tolist()})
    (verdict,) = judge(configurations("1", "2"), measured, [elapsed], order_matters=False)
    assert verdict.estimate is not None
    assert verdict.estimate < 1
    assert verdict.means_disagree
    assert verdict.verdict == "undecided"


def test_rare_expensive_trials_are_not_equivalent_and_tails_are_shown(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    """Trials of one kind, 1 in 100, take 20 times as long: the typical trial is alike, the mean one 19 % slower."""
    random = np.random.default_rng(5)
    base, other = 1 + 0.001 * random.random((2, 100))
    other[70] = 20.0

    def judged(n: int) -> Verdict:
        measured = trials({"knob=1": base[:n].tolist(), "knob=2": other[:n].tolist()})
        (verdict,) = judge(configurations("1", "2"), measured, [elapsed], smallest_effect=0.18, order_matters=False)
        return verdict

    assert judged(70).verdict == "equivalent"
    verdict = judged(100)
    assert verdict.high is not None
    assert verdict.high < 1.18
    assert verdict.verdict == "undecided"
    assert "that of means +19 %" in verdict.reason
    assert "p95 goes from 1 s to 1 s; p99 goes from 1 s to 1.19 s" in verdict.reason


def in_time(differences: NDArray[np.float64], trials: Any, configurations: Any, elapsed: Metric) -> Verdict:
    common = 0.05 * np.sin(np.arange(len(differences)))
    measured = trials({"knob=1": np.exp(common).tolist(), "knob=2": np.exp(common + differences).tolist()})
    (verdict,) = judge(configurations("1", "2"), measured, [elapsed], smallest_effect=0.01)
    return verdict


def test_a_state_that_lasts_over_blocks_widens_the_interval(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """The same differences in another order are certain; what would tell more is named, and can be asked for."""
    lasting = np.repeat([0.034, 0.014, -0.008, 0.032, 0.009], 5) + np.tile([0.001, -0.001, 0, 0.002, -0.002], 5)
    verdict = in_time(lasting, trials, configurations, elapsed)
    assert verdict.verdict == "undecided"
    assert "neighbouring blocks resemble each other" in verdict.reason
    assert 1 < int(verdict.reason.split(" independent")[0].split()[-1]) < 12
    compare = typer.main.get_command(whole_application()).commands["compare"]  # type: ignore[attr-defined]
    options = {name for parameter in compare.params for name in parameter.opts}
    assert {"--service", "--reboots"} <= {word.strip("(),;") for word in verdict.reason.split()} & options
    mixed = in_time(np.random.default_rng(4).permutation(lasting), trials, configurations, elapsed)
    assert mixed.verdict == "worsens"
    assert mixed.estimate == pytest.approx(verdict.estimate)


def test_a_state_that_changes_once_in_few_blocks_is_seen(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """Eight blocks: four in a state, four in another."""
    halves = np.repeat([0.04, 0.01], 4) + np.tile([0.001, -0.001], 4)
    lasting = in_time(halves, trials, configurations, elapsed)
    assert lasting.verdict == "undecided"
    assert lasting.more_blocks is not None
    mixed = in_time(halves.reshape(2, 4).T.ravel(), trials, configurations, elapsed)
    assert mixed.verdict == "worsens"
