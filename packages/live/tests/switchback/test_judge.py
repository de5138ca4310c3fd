"""Verdicts on slices: what a live experiment would print, run by run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from benchmarks.switchback.experiments import SMALLEST_EFFECT, Run, ajuste, switched
from benchmarks.switchback.services import SERVICES, SimulatedService
from benchmarks.switchback.stays import CASES, simulate_stays

from ajuste.model.metric import Metric
from ajuste_live.judge import judge_slices
from ajuste_stats.switchback.design import order_of_block
from ajuste_stats.switchback.plan import noise_of_pilot, plan_slices
from ajuste_stats.switchback.slices import Slice
from ajuste_stats.terms import SwitchbackOrder

LATENCY = Metric(name="latency", title="latency", unit="s", direction="lower")
QUEUE = Metric(name="queue", title="queue length", unit="1", direction="lower", scale="difference", resolution=1)
NAMED = {service.name: service for service in SERVICES}
TOGETHER = NAMED["together"]


def slices_of(run: Run, at: int) -> list[Slice]:
    names = ["b" if other else "a" for other in run.other[at]]
    return [
        Slice(
            number=number,
            block=number // 2,
            treatment=name,
            begin_s=60.0 * number + 15,
            end_s=60.0 * number + 60,
            value=float(np.exp(run.values[at, number])),
            control=float(np.exp(run.control[at, number])),
        )
        for number, name in enumerate(names)
    ]


def experiment(
    effects: Mapping[str, float],
    *,
    service: SimulatedService = TOGETHER,
    order: SwitchbackOrder = "random",
    slices: int = 240,
    seed: int = 1,
    control: bool = True,
) -> list[Slice]:
    names = list(effects)
    planned: list[tuple[int, str]] = []
    while len(planned) < slices:
        block = planned[-1][0] + 1 if planned else 0
        planned += [(block, name) for name in order_of_block(block, names, seed, order)]
    noise, load = service.draw(np.random.default_rng(seed), 1, len(planned))
    return [
        Slice(
            number=number,
            block=block,
            treatment=name,
            begin_s=60.0 * number + 15,
            end_s=60.0 * number + 60,
            value=0.01 * float(np.exp(noise[0, number])) * (1 + effects[name]),
            control=1000 * float(np.exp(load[0, number])) if control else None,
        )
        for number, (block, name) in enumerate(planned)
    ]


def test_a_look_after_every_slice_says_what_the_benchmark_counts() -> None:
    for service in (NAMED["bursts"], TOGETHER):
        run = switched(service, np.random.default_rng(3), 2, 120, 0.03)
        for at_equal_load in (False, True):
            looks = ajuste(run, at_equal_load=at_equal_load)
            for at in range(2):
                slices = slices_of(run, at)
                if not at_equal_load:
                    slices = [
                        Slice(
                            original.number,
                            original.block,
                            original.treatment,
                            original.begin_s,
                            original.end_s,
                            original.value,
                        )
                        for original in slices
                    ]
                for block in range(5, 60, 11):
                    (verdict,) = judge_slices(
                        slices[: 2 * block + 2],
                        LATENCY,
                        baseline="a",
                        configurations=["a", "b"],
                        smallest_effect=SMALLEST_EFFECT,
                        diagnose_noise=False,
                    ).verdicts
                    counted = {
                        "worsens": looks.higher[at, block],
                        "improves": looks.lower[at, block],
                        "equivalent": looks.equivalent[at, block],
                    }
                    assert [word for word, there in counted.items() if there] == (
                        [] if verdict.verdict == "undecided" else [verdict.verdict]
                    )


@pytest.mark.parametrize("order", ["random", "mirrored"])
def test_good_and_useless_settings_get_the_right_verdicts_under_drifting_load(order: SwitchbackOrder) -> None:
    slices = experiment({"default": 0.0, "good": -0.06, "useless": 0.0}, order=order, slices=600)
    judgement = judge_slices(
        slices, LATENCY, baseline="default", configurations=["default", "good", "useless"], comparisons=2,
        smallest_effect=0.03,
    )  # fmt: skip
    good, useless = judgement.verdicts
    assert (good.verdict, useless.verdict) == ("improves", "equivalent")
    assert good.low is not None
    assert good.high is not None
    assert good.low < 0.94 < good.high
    assert judgement.more_slices == 0
    assert any("resembles the one before" in finding and "drawn at random" in finding for finding in judgement.findings)


def test_of_the_last_block_the_part_counts_that_has_both_configurations() -> None:
    slices = experiment({"a": 0.0, "b": -0.2}, order="mirrored", slices=60, service=NAMED["steady"])
    whole, alone, both = (
        judge_slices(slices[:n], LATENCY, baseline="a", configurations=["a", "b"]).verdicts[0] for n in (40, 41, 43)
    )
    assert alone == whole
    assert (whole.blocks, both.blocks) == (10, 11)


def test_slices_with_flags_and_without_values_do_not_count() -> None:
    slices = experiment({"a": 0.0, "b": 0.0}, slices=60, control=False, service=NAMED["steady"])
    spoilt = [
        Slice(
            original.number,
            original.block,
            original.treatment,
            original.begin_s,
            original.end_s,
            100.0,
            flags=("guard",),
        )
        if original.block == 3
        else Slice(original.number, original.block, original.treatment, original.begin_s, original.end_s)
        if original.block == 4
        else original
        for original in slices
    ]
    (verdict,) = judge_slices(spoilt, LATENCY, baseline="a", configurations=["a", "b"]).verdicts
    assert verdict.blocks == 28
    assert verdict.verdict == "equivalent"


def test_nothing_yet_and_too_little_are_said() -> None:
    slices = experiment({"a": 0.0, "b": 0.0}, slices=12)
    none, few = (judge_slices(slices[:n], LATENCY, baseline="a", configurations=["a", "b"]) for n in (1, 6))
    assert none.verdicts[0].reason == "no block has a clean slice of both the baseline and this configuration yet"
    assert none.more_slices is None
    assert few.verdicts[0].reason == "3 blocks of the 7 that an interval requires"


def test_the_number_of_further_slices_is_a_fair_guide() -> None:
    steady = NAMED["steady"]
    ratios = []
    for seed in range(6):
        slices = experiment({"a": 0.0, "b": 0.02}, slices=200, seed=seed, service=steady, control=False)

        def look(count: int, slices: list[Slice] = slices) -> tuple[str, int | None]:
            judgement = judge_slices(
                slices[:count], LATENCY, baseline="a", configurations=["a", "b"], smallest_effect=0.01,
                diagnose_noise=False,
            )  # fmt: skip
            return judgement.verdicts[0].verdict, judgement.more_slices

        if look(24)[0] == "undecided":
            more = look(24)[1]
            assert more is not None
            end = next((count for count in range(24, 200, 8) if look(count)[0] != "undecided"), 200)
            ratios.append((end - 24) / more)
    assert 0.4 < float(np.median(ratios)) < 2.5


def test_a_control_that_the_setting_changes_is_not_used_and_that_is_said() -> None:
    slices = [
        Slice(
            original.number, original.block, original.treatment, original.begin_s, original.end_s, original.value,
            (original.control or 1.0) * (1.3 if original.treatment == "b" else 1.0),
        )
        for original in experiment({"a": 0.0, "b": 0.0}, slices=120)
    ]  # fmt: skip
    judgement = judge_slices(slices, LATENCY, baseline="a", configurations=["a", "b"])
    assert judgement.adjusted == ()
    assert "b changes the control figure itself: the verdict does not use it." in judgement.findings


def test_a_control_that_explains_the_noise_is_used() -> None:
    service = SimulatedService("loaded", "", white=0.002, wander=0.1)
    with_it, without = (
        judge_slices(
            experiment({"a": 0.0, "b": -0.02}, service=service, slices=100, control=control),
            LATENCY, baseline="a", configurations=["a", "b"], smallest_effect=0.01,
        )
        for control in (True, False)
    )  # fmt: skip
    assert with_it.adjusted == ("b",)
    assert with_it.verdicts[0].verdict == "improves"
    widths = [(judgement.verdicts[0].high or 9) - (judgement.verdicts[0].low or 0) for judgement in (with_it, without)]
    assert widths[0] < widths[1]


def test_an_effect_that_comes_and_goes_is_said() -> None:
    slices = [
        Slice(
            original.number, original.block, original.treatment, original.begin_s, original.end_s,
            (original.value or 0.0) * (1.1 if original.treatment == "b" and original.block // 20 % 2 else 1.0),
        )
        for original in experiment({"a": 0.0, "b": 0.0}, slices=160, service=NAMED["steady"])
    ]  # fmt: skip
    judgement = judge_slices(slices, LATENCY, baseline="a", configurations=["a", "b"])
    assert any(finding.startswith("The effect of b changes over time") for finding in judgement.findings)


def test_counts_that_can_be_zero_are_compared_by_differences() -> None:
    random = np.random.default_rng(4)
    slices = [
        Slice(n, n // 2, name, 60.0 * n, 60.0 * n + 60, float(random.poisson(5 if name == "a" else 2)))
        for n, name in enumerate(name for block in range(40) for name in order_of_block(block, ["a", "b"], 5))
    ]
    (verdict,) = judge_slices(slices, QUEUE, baseline="a", configurations=["a", "b"]).verdicts
    assert (verdict.scale, verdict.verdict) == ("difference", "improves")
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < -3 < verdict.high


def test_values_that_are_all_the_same_are_equivalent_and_not_certain_beyond_their_resolution() -> None:
    metric = QUEUE.model_copy(update={"scale": "ratio"})
    slices = [
        Slice(n, n // 2, name, 60.0 * n, 60.0 * n + 60, 1000.0)
        for n, name in enumerate(name for block in range(20) for name in order_of_block(block, ["a", "b"], 5))
    ]
    (verdict,) = judge_slices(slices, metric, baseline="a", configurations=["a", "b"]).verdicts
    assert verdict.verdict == "equivalent"
    assert verdict.low is not None
    assert verdict.low < 1 - 1e-5


def test_a_plan_from_a_day_of_values_is_right_to_a_factor_of_2() -> None:
    run = switched(TOGETHER, np.random.default_rng(6), 100, 600, 0.03)
    pilots, _ = TOGETHER.draw(np.random.default_rng(7), 30, 144)
    noises = [
        noise for pilot in pilots if (noise := noise_of_pilot(np.exp(pilot), 2, "random", ratio=True)) is not None
    ]
    assert len(noises) == len(pilots)
    planned = np.median([plan_slices(noise, np.log1p(0.03), 0.05, 2, "random").slices or np.inf for noise in noises])
    looks = ajuste(run, at_equal_load=False)
    took = 2 * (1 + np.argmax(looks.higher, axis=1))
    assert planned / 2 < np.quantile(took, 0.95) < planned * 2


def test_a_plan_with_stays_is_right_to_a_factor_of_2() -> None:
    pilots, _ = TOGETHER.draw(np.random.default_rng(7), 30, 144)
    noises = [noise_of_pilot(np.exp(pilot), 2, "random", ratio=True) for pilot in pilots]
    plans = [plan_slices(noise, np.log1p(0.1), 0.05, 2, "random", stays=True) for noise in noises if noise is not None]
    (cell,) = simulate_stays(200, [case for case in CASES if case.name == "−10 %"], ["together"])
    typical = np.median([plan.typical or np.inf for plan in plans])
    assert typical / 2 < cell.slices_with_stays < typical * 2
    assert all(60 <= plan.in_stays < (plan.slices or np.inf) for plan in plans)
