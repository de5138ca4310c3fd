"""The answer in one sentence: what to do, what it changes and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ajuste.model.boot import BOOTS
from ajuste.model.explained import Explained
from ajuste.model.metric import Metric, PredictionRule
from ajuste.model.prediction import Prediction
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.trial import Factor
from ajuste.model.verdict import Ranked, Ranking, Verdict
from ajuste.report.format import result_labels
from ajuste.report.headline import MOST_WORDS, headlines
from ajuste.report.results import results_report
from ajuste_stats.sign_intervals import blind_spot
from ajuste_stats.terms import Direction, Word


def headline_sentences(results: Results) -> list[str]:
    return [headline.sentence for headline in headlines(results, result_labels(results))]


def results_of(
    results: Results,
    means: Mapping[str, float],
    words: Sequence[tuple[Word, float]],
    direction: Direction = "lower",
    *,
    factor: str = "vm.swappiness",
    explained: bool = True,
) -> Results:
    """``found`` with one factor whose levels have these ``means``, the first being the baseline."""
    metric = Metric(name="elapsed", title="elapsed time", unit="s", direction=direction)
    levels = tuple(means)
    return results.model_copy(
        update={
            "clock": "wall",
            "rankings": (),
            "factors": (Factor(name=factor, levels=levels, baseline=levels[0]),),
            "explained": (Explained(name=factor, title="", what="", unit=""),) if explained else (),
            "metrics": (metric,),
            "blocks": 12,
            "smallest_effect": 0.05,
            "effects": (),
            "configurations": tuple(
                Measured(
                    name=f"{factor}={level}",
                    levels={factor: level},
                    baseline=level == levels[0],
                    metrics={
                        "elapsed": Summary(n=12, mean=mean, median=mean, sd=0.1, sem=0.1, minimum=mean, maximum=mean)
                    },
                )
                for level, mean in means.items()
            ),
            "verdicts": tuple(
                Verdict(
                    configuration=f"{factor}={level}",
                    metric="elapsed",
                    unit="s",
                    direction=direction,
                    scale="ratio",
                    verdict=word,
                    estimate=estimate,
                    low=estimate - 0.01,
                    high=estimate + 0.01,
                    level=0.95,
                    blocks=12,
                    more_blocks=30 if word == "undecided" else None,
                    reason="",
                )
                for level, (word, estimate) in zip(levels[1:], words, strict=True)
            ),
        }
    )


ONE = {"60": 8.1, "10": 7.1}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("improves", 0.877), "Use vm.swappiness = 10: it cuts elapsed time from 8.1 s to 7.1 s (−12.3 %)."),
        (
            ("worsens", 1.12),
            "Keep vm.swappiness = 60: vm.swappiness = 10 raises elapsed time from 8.1 s to 7.1 s (+12 %).",
        ),
        (("equivalent", 1.0), "vm.swappiness = 10 does not matter: elapsed time stays within ±5 %."),
        (
            ("undecided", 1.0),
            "Not settled between vm.swappiness = 60 and 10 after 12 blocks: elapsed time.",
        ),
    ],
)
def test_one_alternative(granularity: Results, words: tuple[Word, float], sentence: str) -> None:
    assert headline_sentences(results_of(granularity, ONE, [words])) == [sentence]


def with_second_metric(results: Results, metric: Metric, word: Word, estimate: float) -> Results:
    """``results`` whose first metric is ``metric``, of which each alternative has this verdict."""
    first = tuple(
        verdict.model_copy(
            update={"metric": metric.name, "unit": metric.unit, "direction": metric.direction}
            | {"verdict": word, "estimate": estimate, "low": estimate - 0.01, "high": estimate + 0.01}
        )
        for verdict in results.verdicts
    )
    configurations = tuple(
        c.model_copy(update={"metrics": {metric.name: c.metrics["elapsed"], **c.metrics}})
        for c in results.configurations
    )
    return results.model_copy(
        update={
            "metrics": (metric, *results.metrics),
            "verdicts": (*first, *results.verdicts),
            "configurations": configurations,
        }
    )


SPEED = Metric(name="speed", title="Speed", unit="kflop/s", direction="higher")


@pytest.mark.parametrize("worse", [{"10": 0.06}, {"10": 0.06, "19": 0.304}])
def test_a_metric_that_worsens_leads_before_one_that_stays(granularity: Results, worse: dict[str, float]) -> None:
    slow = results_of(granularity, {"0": 0.011, **worse}, [("worsens", 28.0)] * len(worse), factor="nice")
    first, second = headline_sentences(with_second_metric(slow, SPEED, "equivalent", 1.0))
    assert first.startswith("Keep nice = 0:")
    assert "elapsed time" in first
    assert "matter" not in second
    assert "speed stays within ±5 %" in second.lower()
    assert results_report(with_second_metric(slow, SPEED, "equivalent", 1.0)).headline == first


def test_cpu_time_is_said_after_what_a_person_feels(granularity: Results) -> None:
    same = results_of(granularity, {"0": 8.1, "10": 8.1}, [("equivalent", 1.0)], factor="nice")
    of_cpu_time = SPEED.model_copy(update={"cpu_time": True})
    assert "speed" in headline_sentences(with_second_metric(same, SPEED, "improves", 1.2))[0]
    first, second = headline_sentences(with_second_metric(same, of_cpu_time, "improves", 1.2))
    assert "elapsed time stays" in first.replace("Elapsed", "elapsed")
    assert "speed" in second


def test_values_without_blocks_are_not_counted_in_blocks(granularity: Results) -> None:
    results = results_of(granularity, ONE, [("undecided", 1.0)]).model_copy(update={"blocks": 0})
    assert headline_sentences(results)[0] == "Not settled between vm.swappiness = 60 and 10: elapsed time."


def test_a_run_without_figures_says_why(granularity: Results) -> None:
    failed = {"blocks": 0, "stopped": "failed", "stopped_because": "b: the workload exited with code 1"}
    results = results_of(granularity, ONE, [("undecided", 1.0)]).model_copy(update=failed)
    assert headline_sentences(results) == ["Nothing was measured: b: the workload exited with code 1."]


def test_a_run_that_ended_before_anything_was_measured_says_so(granularity: Results) -> None:
    results = results_of(granularity, ONE, [("undecided", 1.0)])
    nothing = tuple(configuration.model_copy(update={"metrics": {}}) for configuration in results.configurations)
    ended = {
        "blocks": 0,
        "stopped": "time",
        "stopped_because": "stopped by ajuste live stop",
        "configurations": nothing,
    }
    assert headline_sentences(results.model_copy(update=ended)) == [
        "Nothing was measured: stopped by ajuste live stop."
    ]


def test_a_run_across_reboots_counts_rounds_of_boots(granularity: Results) -> None:
    results = results_of(granularity, ONE, [("undecided", 1.0)])
    verdicts = tuple(verdict.model_copy(update={"of_rounds": True, "more_blocks": 1}) for verdict in results.verdicts)
    environment = {BOOTS: {"each": 2, "warm_up": 1, "loader": "grub"}}
    (sentence,) = headline_sentences(results.model_copy(update={"verdicts": verdicts, "environment": environment}))
    assert "after 12 rounds of boots: " in sentence


def test_the_best_of_several_is_named(granularity: Results) -> None:
    results = results_of(granularity, {"60": 8.0, "10": 7.0, "1": 6.0}, [("improves", 0.875), ("improves", 0.75)])
    assert headline_sentences(results) == ["Use vm.swappiness = 1: it cuts elapsed time from 8 s to 6 s (−25 %)."]
    assert [headline.winner for headline in headlines(results, result_labels(results))] == ["vm.swappiness=1"]


def test_higher_may_be_better(granularity: Results) -> None:
    results = results_of(granularity, {"60": 6.0, "10": 8.0}, [("improves", 1.333)], "higher")
    assert headline_sentences(results) == ["Use vm.swappiness = 10: it raises elapsed time from 6 s to 8 s (+33.3 %)."]


def test_where_all_others_are_worse_the_baseline_is_kept(granularity: Results) -> None:
    words: list[tuple[Word, float]] = [("worsens", 1.2), ("equivalent", 1.0), ("worsens", 1.3)]
    results = results_of(granularity, {"60": 8.0, "10": 9.6, "1": 8.0, "100": 10.4}, words)
    assert headline_sentences(results) == ["Keep vm.swappiness = 60: 2 of 3 alternatives raise elapsed time."]


def test_the_baseline_is_not_kept_while_another_may_be_better(granularity: Results) -> None:
    words: list[tuple[Word, float]] = [("worsens", 1.2), ("undecided", 1.0), ("worsens", 1.3)]
    (sentence,) = headline_sentences(results_of(granularity, {"60": 8.0, "10": 9.6, "1": 8.0, "100": 10.4}, words))
    assert "Keep" not in sentence
    assert sentence.startswith("Not settled between vm.swappiness = 60 and 1 after")
    assert sentence.endswith("2 of 3 alternatives raise elapsed time.")


def test_nothing_is_called_best_while_another_may_be_better(granularity: Results) -> None:
    results = results_of(granularity, {"60": 8.0, "10": 6.1, "1": 6.0}, [("improves", 0.755), ("improves", 0.75)])
    (sentence,) = headline_sentences(results)
    assert sentence.startswith("Not settled")
    best, others = sentence.split(", but ")
    assert "vm.swappiness = 1 cuts elapsed time by 25 %" in best
    assert others == "vm.swappiness = 10 may be better."
    rival = Ranked.model_validate(results.verdicts[0].model_dump() | {"verdict": "equivalent", "deciding": False})
    ranking = Ranking(
        metric="elapsed",
        winner="vm.swappiness=1",
        contenders=("vm.swappiness=1", rival.configuration),
        others=(rival,),
        level=0.95,
        comparisons=3,
    )
    assert headline_sentences(results.model_copy(update={"rankings": (ranking,)}))[0].startswith(
        "Use vm.swappiness = 1: "
    )
    winner = ranking.model_copy(update={"winner": rival.configuration, "others": ()})
    assert headline_sentences(results.model_copy(update={"rankings": (winner,)}))[0].startswith(
        "Use vm.swappiness = 10: "
    )


def test_what_is_worse_by_less_than_matters_is_not_said_to_change_the_metric(granularity: Results) -> None:
    """A speed 0.016 % lower under every alternative, in too few seeds to be called equivalent, cuts nothing."""
    means = {"60": 8.0, "10": 8.16, "1": 8.16}
    results = results_of(granularity, means, [("undecided", 1.02), ("undecided", 1.02)])
    few = tuple(verdict.model_copy(update={"few_trials": True}) for verdict in results.verdicts)
    (sentence,) = headline_sentences(results.model_copy(update={"verdicts": few}))
    assert "Keep vm.swappiness = 60" in sentence
    assert "raise" not in sentence
    one_is = (few[0], few[1].model_copy(update={"verdict": "worsens", "few_trials": False, "estimate": 1.3}))
    (sentence,) = headline_sentences(results.model_copy(update={"verdicts": one_is}))
    assert "1 of 2 alternatives raises elapsed time" in sentence


def test_what_is_worse_for_certain_is_no_rival_though_it_may_not_matter(granularity: Results) -> None:
    """Such as a difference of 4 % that too few seeds show."""
    words: list[tuple[Word, float]] = [("worsens", 1.2), ("undecided", 1.04), ("worsens", 1.3)]
    results = results_of(granularity, {"60": 8.0, "10": 9.6, "1": 8.3, "100": 10.4}, words)
    assert headline_sentences(results) == ["Keep vm.swappiness = 60: 3 of 3 alternatives raise elapsed time."]
    better = results_of(granularity, {"60": 8.0, "10": 6.1, "1": 6.0}, [("improves", 0.755), ("improves", 0.75)])
    other = Ranked.model_validate(better.verdicts[0].model_dump() | {"verdict": "undecided", "deciding": False})
    ranking = Ranking(
        metric="elapsed",
        winner="vm.swappiness=1",
        contenders=("vm.swappiness=1",),
        others=(other,),
        level=0.95,
        comparisons=3,
    )
    assert headline_sentences(better.model_copy(update={"rankings": (ranking,)}))[0].startswith(
        "Use vm.swappiness = 1: "
    )


def test_the_virtual_clock_is_named_once(granularity: Results) -> None:
    results = results_of(granularity, ONE, [("equivalent", 1.0)]).model_copy(update={"clock": "virtual"})
    assert headline_sentences(results)[0].startswith("In emulation, vm.swappiness = 10 does not matter")
    better = results_of(granularity, ONE, [("improves", 0.8)]).model_copy(update={"clock": "virtual"})
    assert headline_sentences(better)[0].startswith("In emulation, use vm.swappiness = 10")
    assert sum("emulation" in sentence for sentence in headline_sentences(granularity)) == 1


def test_a_study_with_a_rule_answers_whether_the_rule_holds(granularity: Results) -> None:
    results = results_of(granularity, ONE, [("improves", 0.8)])
    rule = PredictionRule(name="weights", title="The scheduler's weights", says="", source="")
    predictions = tuple(
        Prediction(configuration="vm.swappiness=10", metric="elapsed", low=7, high=7, measured=7 + off, residual=off)
        for off in (-0.1, 0.3681)
    )
    ruled = results.model_copy(update={"rule": rule, "predictions": predictions})
    assert headline_sentences(ruled) == [
        "The scheduler's weights predict elapsed time to within 370 ms in all 2 configurations."
    ]
    exact = [prediction.model_copy(update={"residual": 0.0}) for prediction in predictions]
    assert headline_sentences(ruled.model_copy(update={"predictions": tuple(exact)})) == [
        "The scheduler's weights predict elapsed time in all 2 configurations."
    ]


@pytest.mark.parametrize(("clock", "says_why"), [("wall", True), ("virtual", False)])
def test_a_rule_that_is_far_off_does_not_predict(granularity: Results, clock: str, says_why: bool) -> None:
    results = results_of(granularity, ONE, [("improves", 0.8)]).model_copy(update={"clock": clock})
    rule = PredictionRule(name="weights", title="The scheduler's weights", says="", source="")
    miss = Prediction(configuration="vm.swappiness=10", metric="elapsed", low=7, high=7, measured=2, residual=-5)
    (sentence,) = headline_sentences(results.model_copy(update={"rule": rule, "predictions": (miss,)}))
    assert "weights do not predict elapsed time: it is 2 s under vm.swappiness = 10, not 7 s." in sentence
    assert ("Other work on this machine" in sentence) == says_why


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([("differs", 1.2), ("equivalent", 1.0), ("undecided", 1.0)], "1 of 3 alternatives changes elapsed time; "),
        ([("differs", 1.2), ("equivalent", 1.0), ("differs", 1.0)], "2 of 3 alternatives change elapsed time; "),
        ([("undecided", 1.0)] * 3, "No effect on elapsed time proved for any of 3 alternatives after 12 blocks."),
        ([("undecided", 1.0)] * 2, "No effect on elapsed time proved for either alternative after 12 blocks."),
    ],
)
def test_without_a_better_direction_effects_are_counted(
    granularity: Results, words: Sequence[tuple[Word, float]], sentence: str
) -> None:
    means = dict(zip(("60", "10", "1", "100")[: len(words) + 1], (8.0, 7.0, 8.0, 7.5), strict=False))
    assert headline_sentences(results_of(granularity, means, words, "none"))[0].startswith(sentence)


@pytest.mark.parametrize(
    ("direction", "ratio", "blocks", "doubtful"),
    [
        ("lower", 0.97, 6, True),
        ("higher", 1.03, 6, True),
        ("lower", 0.97, 29, False),
        ("lower", 0.6, 6, False),
        ("higher", 1.9, 6, False),
        ("lower", 0.9, 6, True),
        ("lower", 0.9, 12, False),
    ],
)
def test_a_gain_that_few_unseen_trials_could_cost_is_called_typical(
    granularity: Results, direction: Direction, ratio: float, blocks: int, *, doubtful: bool
) -> None:
    """Trials that so many blocks miss in one of 20 studies may be a quarter worse."""
    results = results_of(granularity, {"60": 10.0, "10": 10.0 * ratio}, [("improves", ratio)], direction)
    unseen = blind_spot(blocks, 0.95)
    verdicts = tuple(v.model_copy(update={"blocks": blocks, "unseen": unseen}) for v in results.verdicts)
    (sentence,) = headline_sentences(results.model_copy(update={"verdicts": verdicts}))
    remark = f"That is typical: {blocks} blocks can miss much worse trials, up to {100 * unseen:.0f} % of all."
    assert sentence.endswith(remark) is doubtful
    assert ("typical" in sentence) is doubtful


def test_commands_speak_for_themselves_and_keep_their_letters(granularity: Results) -> None:
    means = {"./old": 8.0, "./new": 6.0}
    results = results_of(granularity, means, [("improves", 0.75)], factor="command", explained=False)
    assert headline_sentences(results) == ["./new cuts elapsed time from 8 s to 6 s (−25 %)."]


def test_what_has_no_better_is_told_along_its_levels(granularity: Results) -> None:
    first = headline_sentences(granularity)[0]
    assert first.startswith(
        "In emulation, raising sched_min_granularity_ns from 750 µs to 750 ms cuts involuntary context switches from 13"
    )


def test_a_hostile_name_is_text(hostile: Results) -> None:
    assert all(sentence.isprintable() for sentence in headline_sentences(hostile))


@pytest.mark.parametrize("name", ["granularity", "grid", "undecided", "timed"])
def test_it_is_short_and_names_no_statistic(name: str, request: pytest.FixtureRequest) -> None:
    sentences = headline_sentences(request.getfixturevalue(name))
    assert sentences
    for sentence in sentences:
        assert len(sentence.split()) <= MOST_WORDS
        assert not any(word in sentence for word in ("interval", "confidence", "significant", "p-value"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"few_trials": True}, ("looks alike", "too few to exclude rare")),
        ({"too_coarse": True, "old": 1.0, "new": 1.0}, ("1 s with both", "too coarse")),
        ({"too_coarse": True, "old": 1.0, "new": 1.1}, ("Not settled", "too coarse")),
        ({"typical": 0.9}, ("Typical elapsed time is −10", "leave the mean open")),
    ],
)
def test_what_is_undecided_for_another_reason_than_noise_says_so(
    granularity: Results, more: dict[str, object], words: Sequence[str]
) -> None:
    results = results_of(granularity, {"10": 1.0, "60": 1.0}, [("undecided", 1.0)])
    changed = results.model_copy(update={"verdicts": (results.verdicts[0].model_copy(update=more),)})
    (sentence,) = headline_sentences(changed)
    assert all(word in sentence for word in words)
    assert len(sentence.split()) <= MOST_WORDS
