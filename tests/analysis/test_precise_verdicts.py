"""A precision that was asked for: what is wider stays open, and the interval holds though its width chose the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ajuste.analysis.pairs import clean_trials, pairs
from ajuste.analysis.verdict import judge
from ajuste.design.blocks import members
from ajuste.design.stopping import StoppingLimits, remaining, stop
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste_stats.decision import is_precise
from ajuste_stats.effects import effect
from tiers import slow
from verdicts import verdict

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")
LIMITS = StoppingLimits(min_blocks=3, max_blocks=30, max_minutes=20)


def logs(seed: int, blocks: int, ratio: float = 1.5, spread: float = 0.05) -> dict[str, list[float]]:
    noise = np.random.default_rng([seed, 17]).normal(0, spread, (2, blocks))
    return {"knob=1": list(np.exp(noise[0])), "knob=2": list(ratio * np.exp(noise[1]))}


def judged(configurations: Any, trials: Any, values: Any, precision: float | None, metric: Metric = ELAPSED) -> Verdict:
    measured = trials(values, metric=metric.column)
    (result,) = judge(configurations("1", "2"), measured, [metric], precision=precision)
    return result


def test_a_decided_verdict_stays_open_until_its_interval_is_narrow_enough(configurations: Any, trials: Any) -> None:
    wide = judged(configurations, trials, logs(1, 8), 0.01)
    assert (wide.verdict, wide.precise, wide.is_open) == ("worsens", False, True)
    assert wide.more_blocks is not None
    narrow = judged(configurations, trials, logs(1, 8), 0.5)
    assert (narrow.verdict, narrow.precise, narrow.is_open, narrow.more_blocks) == ("worsens", True, False, None)
    assert judged(configurations, trials, logs(1, 8), None).precise is None


def test_the_width_is_that_of_the_ratio_to_each_side(configurations: Any, trials: Any) -> None:
    result = judged(configurations, trials, logs(1, 12), None)
    assert result.low is not None
    assert result.high is not None
    reach = math.sqrt(result.high / result.low) - 1
    assert judged(configurations, trials, logs(1, 12), reach * 1.001).precise is True
    assert judged(configurations, trials, logs(1, 12), reach * 0.999).precise is False


def test_of_differences_it_is_a_share_of_the_baselines_mean(configurations: Any, trials: Any) -> None:
    metric = ELAPSED.model_copy(update={"scale": "difference"})
    values = {"knob=1": [10.0, 11, 9, 10, 10, 11], "knob=2": [20.0, 23, 19, 20, 21, 22]}
    result = judged(configurations, trials, values, None, metric)
    assert result.low is not None
    assert result.high is not None
    share = (result.high - result.low) / 2 / float(np.mean(values["knob=1"]))
    assert judged(configurations, trials, values, share * 1.001, metric).precise is True
    assert judged(configurations, trials, values, share * 0.999, metric).precise is False


def test_the_prediction_comes_true_where_spread_stays(configurations: Any, trials: Any) -> None:
    values = logs(3, 10)
    result = judged(configurations, trials, values, 0.02)
    assert result.more_blocks is not None
    times = math.ceil(1.05 * (10 + result.more_blocks) / 10)
    enough = {name: sample * times for name, sample in values.items()}
    assert judged(configurations, trials, enough, 0.02).precise is True
    fewer = {name: sample * (times // 2) for name, sample in values.items()}
    assert judged(configurations, trials, fewer, 0.02).precise is False


def test_quantiles_have_a_precision_too(configurations: Any, trials: Any) -> None:
    values = logs(4, 60)
    median = ELAPSED.at(0.5)
    assert judged(configurations, trials, values, 0.5, median).precise is True
    assert judged(configurations, trials, values, 0.001, median).precise is False


def test_what_only_describes_need_not_be_precise(configurations: Any, trials: Any) -> None:
    other = Metric(name="other", title="Other", unit="s", direction="lower")
    verdicts = judge(configurations("1", "2"), trials(logs(1, 8), metric="other"), [ELAPSED], [other], precision=0.001)
    assert [(result.metric, result.precise) for result in verdicts] == [("elapsed", None), ("other", None)]


@pytest.mark.parametrize("studies", [60, *slow(200)])
@pytest.mark.parametrize("ratio", [1.5, *slow(1.0)])
def test_the_interval_holds_at_the_stated_rate_when_its_width_ends_the_run(
    trials: Any, ratio: float, studies: int
) -> None:
    """A look after every block, and the run ends with the first interval that is narrow enough. An ordinary t interval
    that chooses its end so is too narrow more often than its confidence says.
    """
    wrong, precise = 0, 0
    for seed in range(studies):
        clean = clean_trials(trials(logs(seed, 40, ratio, 0.03)))
        whole = pairs(clean, "knob=1", "knob=2", "elapsed")
        for blocks in range(3, 41):
            some = type(whole)(whole.baseline[:blocks], whole.other[:blocks])
            estimated = effect(some, ELAPSED, 0.05)
            assert estimated is not None
            if is_precise(estimated, 0.03):
                precise += 1
                wrong += (
                    abs(estimated.interval.mean - math.log(ratio))
                    > (estimated.interval.high - estimated.interval.low) / 2
                )
                break
    assert precise > 0.9 * studies
    assert wrong <= 0.05 * studies


# What follows: when a run stops, and what it goes on with.


def test_a_run_goes_on_for_precision_and_says_so_if_the_budget_ends_it() -> None:
    wide, narrow = verdict(word="worsens", precise=False), verdict("c", "improves", precise=True)
    assert stop([wide, narrow], 29, 1, LIMITS) is None
    spent = stop([wide, narrow], 30, 1, LIMITS)
    assert spent is not None
    assert spent.words == "reached the limit of 30 blocks; one interval is less precise than requested"
    both = stop([wide, narrow, verdict("d")], 30, 1, LIMITS)
    assert both is not None
    assert both.words.endswith("one verdict is undecided, one interval is less precise than requested")
    done = stop([narrow], 5, 1, LIMITS)
    assert done is not None
    assert (done.why, done.words) == ("decided", "the verdict is decided with the requested precision after 5 blocks")


def test_what_depends_on_the_machine_does_not_go_on_for_precision() -> None:
    stopped = stop([verdict(depends_on_machine=True, precise=False)], 5, 1, LIMITS)
    assert stopped is not None
    assert stopped.why == "decided"


def test_later_blocks_hold_what_is_not_precise_enough_and_the_time_left_counts_it() -> None:
    findings = [verdict("b", "worsens", precise=False, blocks=60, more_blocks=7), verdict("c", "worsens", precise=True)]
    assert members(("a", "b", "c"), "a", findings) == ("a", "b")
    left = remaining(5, findings, min_blocks=3, max_blocks=30)
    assert (left.blocks, left.at_most) == (7, False)
