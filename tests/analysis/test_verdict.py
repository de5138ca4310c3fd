from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ajuste.analysis.verdict import family, judge
from ajuste.model.metric import Metric
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import Verdict
from ajuste_stats.sign_intervals import fewest_blocks
from tiers import slow

BASE = [10.0, 11.0, 10.5, 9.8, 10.2, 10.9, 10.1, 10.4, 10.3, 10.6, 9.9, 10.7] * 3


def single_verdict(
    configurations: Any, trials: Any, metric: Metric, other: list[float], base: list[float] = BASE
) -> Verdict:
    both = configurations("1", "2")
    measured = trials({"knob=1": base, "knob=2": other}, metric=metric.name)
    (verdict,) = judge(both, measured, [metric])
    return verdict


def noisy(factor: float, spread: float = 0.002) -> list[float]:
    noise = np.random.default_rng(5).normal(0, spread, len(BASE))
    return [float(v) for v in np.array(BASE) * factor * np.exp(noise)]


@pytest.mark.parametrize(
    ("direction", "factor", "word"),
    [
        ("lower", 0.8, "improves"),
        ("lower", 1.25, "worsens"),
        ("higher", 0.8, "worsens"),
        ("higher", 1.25, "improves"),
        ("none", 0.8, "differs"),
        ("none", 1.25, "differs"),
        ("lower", 1.01, "equivalent"),
        ("none", 1.0, "equivalent"),
    ],
)
def test_the_word_follows_from_effect_and_direction(
    configurations: Any, trials: Any, elapsed: Metric, direction: str, factor: float, word: str
) -> None:
    metric = elapsed.model_copy(update={"direction": direction})
    verdict = single_verdict(configurations, trials, metric, noisy(factor))
    assert verdict.verdict == word
    assert verdict.estimate == pytest.approx(factor, rel=0.01)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < factor < verdict.high
    assert verdict.blocks == len(BASE)
    assert verdict.more_blocks is None


def test_a_difference_that_is_real_but_too_small_to_matter_is_equivalent_and_says_both(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    verdict = single_verdict(configurations, trials, elapsed, noisy(1.02))
    assert verdict.verdict == "equivalent"
    assert "real but smaller than ±5 %" in verdict.reason


def test_trials_in_which_nothing_happens_prove_nothing(configurations: Any, trials: Any, switches: Metric) -> None:
    few = single_verdict(configurations, trials, switches, [0.0] * 4, [0.0] * 4)
    assert few.verdict == "undecided"
    assert few.reason.startswith("4 blocks of the 6")
    many = single_verdict(configurations, trials, switches, [0.0] * 60, [0.0] * 60)
    assert many.verdict == "undecided"
    assert "nothing happened in 60 trials" in many.reason
    now_and_then = [0.0, 1.0, 0.0, 0.0, 1.0] * 20
    assert single_verdict(configurations, trials, switches, now_and_then, [0.0] * 100).verdict == "differs"


def test_sizes_are_said_without_double_negation(configurations: Any, trials: Any, elapsed: Metric) -> None:
    assert single_verdict(configurations, trials, elapsed, [v * 0.8 for v in BASE]).reason == (
        "lower by 20 % to 20 %, and lower is better"
    )
    assert single_verdict(configurations, trials, elapsed, [v * 1.25 for v in BASE]).reason == (
        "higher by 25 % to 25 %, and lower is better"
    )


def test_noise_is_undecided_with_a_prediction_that_comes_true(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    """The prediction supposes that mean and spread stay: repeating the same blocks does just that."""
    generator = np.random.default_rng(11)
    base = [float(v) for v in generator.lognormal(0, 0.1, 20)]
    other = [float(v) for v in generator.lognormal(0, 0.1, 20)]

    def repeated(times: int) -> Verdict:
        return single_verdict(configurations, trials, elapsed, other * times, base * times)

    verdict = repeated(1)
    assert verdict.verdict == "undecided"
    assert verdict.more_blocks is not None
    assert "includes zero" in verdict.reason
    times = math.ceil((20 + verdict.more_blocks) / 20)
    assert times > 2
    assert repeated(times // 2).verdict == "undecided"
    assert repeated(times).verdict != "undecided"


def test_two_blocks_are_too_few_and_say_how_many_are_needed(configurations: Any, trials: Any, elapsed: Metric) -> None:
    verdict = single_verdict(configurations, trials, elapsed, [5.0, 5.1], [10.0, 10.1])
    assert (verdict.verdict, verdict.low, verdict.high) == ("undecided", None, None)
    assert verdict.reason == f"2 blocks of the {fewest_blocks(0.05)} that an interval requires"


def test_bonferroni_counts_configurations_times_deciding_metrics(
    configurations: Any, trials: Any, elapsed: Metric, switches: Metric
) -> None:
    three = configurations("1", "2", "3")
    group = family(three, [elapsed, switches], 0.95)
    assert group.comparisons == 4
    assert group.alpha == pytest.approx(0.0125)
    assert "4 comparisons, each at 98.75 %" in group.describe(2)
    narrow = judge(three[:2], trials({"knob=1": BASE, "knob=2": noisy(1.1)}), [elapsed])[0]
    wide = judge(three, trials({"knob=1": BASE, "knob=2": noisy(1.1), "knob=3": BASE}), [elapsed, switches])[0]
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low


def test_described_metrics_get_the_same_words_but_do_not_decide(
    configurations: Any, trials: Any, elapsed: Metric, switches: Metric
) -> None:
    both = configurations("1", "2")
    measured = [
        t.model_copy(update={"metrics": {**t.metrics, "switches": 100.0 if t.slot.configuration == "knob=1" else 50.0}})
        for t in trials({"knob=1": BASE, "knob=2": noisy(0.8)})
    ]
    unseen = elapsed.model_copy(update={"name": "never-measured"})
    verdicts = judge(both, measured, [elapsed], [switches, unseen])
    assert [(v.metric, v.verdict, v.deciding) for v in verdicts] == [
        ("elapsed", "improves", True),
        ("switches", "differs", False),
    ]
    assert verdicts[1].estimate == -50


def test_only_clean_pairs_count(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """A flagged trial with an absurd value, its clean repetition, a warm-up, and a block without a partner."""
    measured: list[Trial] = trials({"knob=1": BASE, "knob=2": noisy(0.8)})
    flagged = measured[0].model_copy(update={"status": "flagged", "metrics": {"elapsed": 1e9}})
    repeated = measured[0].model_copy(update={"attempt": 1})
    warm = Trial(
        slot=Slot(block=99, position=0, configuration="knob=1", seed=1, warm_up=True),
        status="ok",
        metrics={"elapsed": 7},
    )
    alone = Trial(slot=Slot(block=98, position=0, configuration="knob=1", seed=1), status="ok", metrics={"elapsed": 7})
    assert judge(configurations("1", "2"), [warm, repeated, *measured[1:], alone, flagged], [elapsed]) == judge(
        configurations("1", "2"), measured, [elapsed]
    )


def test_a_metric_that_cannot_be_measured_says_why(configurations: Any, trials: Any, elapsed: Metric) -> None:
    cycles = elapsed.model_copy(update={"name": "cycles"})
    measured = [t.model_copy(update={"not_supported": {"cycles": "No such file"}}) for t in trials({"knob=1": BASE})]
    verdict = judge(configurations("1", "2"), measured, [cycles])[0]
    assert (verdict.verdict, verdict.blocks, verdict.reason) == ("undecided", 0, "not supported: No such file")


def test_a_configuration_without_a_clean_trial_says_why(configurations: Any, trials: Any, elapsed: Metric) -> None:
    measured = [
        t.model_copy(update={"status": "flagged", "reason": "exit code 3"}) if t.slot.configuration == "knob=2" else t
        for t in trials({"knob=1": BASE, "knob=2": BASE})
    ]
    verdict = judge(configurations("1", "2"), measured, [elapsed])[0]
    assert verdict.reason == "no clean trial of knob=2: exit code 3"


@pytest.mark.parametrize("studies", [20, *slow(60)])
def test_a_family_of_verdicts_with_looks_after_every_block_errs_less_often_than_promised(
    configurations: Any, trials: Any, elapsed: Metric, studies: int
) -> None:
    """Nothing differs, three configurations, up to 12 blocks: how often is any ever said to differ?"""
    four = configurations("1", "2", "3", "4")
    wrong = 0
    for seed in range(studies):
        values = np.random.default_rng(seed).lognormal(0, 0.2, (4, 12))
        wrong += any(
            verdict.verdict not in ("undecided", "equivalent")
            for n in range(2, 13)
            for verdict in judge(
                four, trials({c.name: list(values[i, :n]) for i, c in enumerate(four)}), [elapsed], confidence=0.8
            )
        )
    assert wrong <= studies * 0.2 + 3 * math.sqrt(studies * 0.2 * 0.8)


def test_the_same_order_in_every_block_decides_nothing_and_says_why(configurations: Any, elapsed: Metric) -> None:
    def measured(other_first: int) -> list[Trial]:
        return [
            Trial(
                slot=Slot(
                    block=block, position=int((name == "knob=2") != (block < other_first)), configuration=name, seed=1
                ),
                status="ok",
                metrics={"elapsed": value * (1.2 if name == "knob=2" else 1.0)},
            )
            for name in ("knob=1", "knob=2")
            for block, value in enumerate(BASE)
        ]

    both = configurations("1", "2")
    (verdict,) = judge(both, measured(0), [elapsed])
    assert verdict.verdict == "undecided"
    assert "the same configuration ran first in each of 36 blocks" in verdict.reason
    (verdict,) = judge(both, measured(1), [elapsed])
    assert verdict.verdict == "worsens"
    (verdict,) = judge(both, measured(0), [elapsed], order_matters=False)
    assert verdict.verdict == "worsens"


def test_what_was_repeated_ran_after_everything_else_of_its_block(configurations: Any, elapsed: Metric) -> None:
    def trial(name: str, block: int, attempt: int, status: str) -> Trial:
        slot = Slot(block=block, position=int(name == "knob=2"), configuration=name, seed=1)
        value = 1.0 + 0.001 * block if name == "knob=1" else 1.2
        return Trial(slot=slot, attempt=attempt, status=status, metrics={"elapsed": value})

    plain = [trial(name, block, 0, "ok") for block in range(6) for name in ("knob=1", "knob=2")]
    repeated = [trial("knob=1", 6, 0, "flagged"), trial("knob=2", 6, 0, "ok"), trial("knob=1", 6, 1, "ok")]
    both = configurations("1", "2")
    assert judge(both, plain, [elapsed])[0].verdict == "undecided"
    assert judge(both, plain + repeated, [elapsed])[0].verdict == "worsens"


def test_a_difference_is_explained_in_the_unit_that_suits_it(configurations: Any, trials: Any) -> None:
    metric = Metric(name="user-time", title="User time", unit="s", direction="lower", scale="difference")
    base = [value / 1e4 for value in BASE[:12]]
    verdict = single_verdict(configurations, trials, metric, [*base[1:], base[0]], base)
    assert verdict.verdict == "undecided"
    assert verdict.reason.endswith("µs, includes zero and extends beyond ±51.8 µs (5 % of the baseline)")
