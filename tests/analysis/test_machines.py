"""Effects on several machines: simulated ones of which the truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ajuste.analysis.machines import across_machines, on_machine, right_for_all, undisputed
from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.analysis.verdict import judge
from ajuste.design.blocks import members
from ajuste.design.stopping import StoppingLimits, stop
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Slot, Trial
from ajuste.model.verdict import AcrossMachines, Verdict

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower", resolution=1e-9)
BOTH = (
    Configuration(name="knob=1", levels={"knob": "1"}, baseline=True),
    Configuration(name="knob=2", levels={"knob": "2"}),
)


def measured(
    effects: Mapping[str, float], blocks: int, *, spread: float = 0.01, seed: int = 1, speeds: bool = True
) -> tuple[list[Trial], dict[int, str]]:
    """Trials of ``blocks`` on each machine, turn by turn, with these ratios to the baseline. Machines have speeds of
    their own.
    """
    random = np.random.default_rng(seed)
    trials, machines = [], {}
    for block in range(blocks * len(effects)):
        machine = list(effects)[block % len(effects)]
        machines[block] = machine
        speed = 1 + 3 * (block % len(effects)) if speeds else 1
        order = random.permutation(2)
        for position, place in enumerate(order):
            value = speed * (effects[machine] if place else 1) * np.exp(random.normal(0, spread))
            slot = Slot(block=block, position=position, configuration=BOTH[place].name, seed=block)
            trials.append(Trial(slot=slot, status="ok", metrics={"elapsed": float(value)}))
    return trials, machines


def compared(trials: list[Trial], machines: Mapping[int, str]) -> tuple[AcrossMachines, Verdict]:
    """Return what the machines say, and the verdict that remains."""
    clean = clean_trials(trials)
    (across,) = across_machines(BOTH, clean, [ELAPSED], [], machines, confidence=0.95, smallest_effect=0.02)
    (verdict,) = right_for_all(judge(BOTH, clean, [ELAPSED], smallest_effect=0.02), [across])
    return across, verdict


def test_one_machine_has_nothing_to_be_compared_with() -> None:
    trials, machines = measured({"lab1": 0.9}, 8)
    clean = clean_trials(trials)
    assert across_machines(BOTH, clean, [ELAPSED], [], machines, confidence=0.95, smallest_effect=0.02) == ()
    assert across_machines(BOTH, clean, [ELAPSED], [], {}, confidence=0.95, smallest_effect=0.02) == ()


def test_machines_of_different_speed_and_the_same_effect_are_alike() -> None:
    across, verdict = compared(*measured({"lab1": 0.9, "lab2": 0.9, "lab3": 0.9}, 8))
    assert across.agreement == "alike"
    assert [machine.blocks for machine in across.machines] == [8, 8, 8]
    assert [machine.estimate for machine in across.machines] == pytest.approx([0.9, 0.9, 0.9], rel=0.02)
    assert (verdict.verdict, verdict.depends_on_machine) == ("improves", False)


def test_what_helps_on_one_machine_and_harms_on_another_is_no_help() -> None:
    across, verdict = compared(*measured({"lab1": 0.8, "lab2": 1.1}, 12))
    assert across.agreement == "depends"
    assert {machine.machine: machine.verdict for machine in across.machines} == {"lab1": "improves", "lab2": "worsens"}
    assert verdict.verdict == "undecided"
    assert verdict.reason.startswith("it depends on the machine: −")
    assert "on lab1 (improves) and +" in verdict.reason
    assert "on lab2 (worsens)" in verdict.reason


def test_what_helps_on_one_machine_and_does_nothing_on_another_is_no_help() -> None:
    # Together they would be an improvement of 10 %.
    _, verdict = compared(*measured({"lab1": 0.8, "lab2": 1.0}, 12, spread=0.004))
    assert verdict.verdict == "undecided"
    assert verdict.depends_on_machine


def test_without_a_better_direction_it_matters_in_which_one_it_differs() -> None:
    trials, machines = measured({"lab1": 0.8, "lab2": 1.1}, 12)
    neutral = ELAPSED.model_copy(update={"direction": "none"})
    clean = clean_trials(trials)
    (across,) = across_machines(BOTH, clean, [neutral], [], machines, confidence=0.95, smallest_effect=0.02)
    assert [machine.verdict for machine in across.machines] == ["differs", "differs"]
    assert across.agreement == "depends"


def test_what_certainly_depends_on_the_machine_needs_no_more_blocks() -> None:
    _, verdict = compared(*measured({"lab1": 0.8, "lab2": 1.1}, 12))
    assert verdict.more_blocks is None
    stopped = stop([verdict], 24, 1, StoppingLimits(3, 100, 60))
    assert stopped is not None
    assert stopped.why == "decided"
    assert members(["knob=1", "knob=2", "knob=3"], "knob=1", [verdict, verdict.model_copy(update=OTHER)]) == (
        "knob=1",
        "knob=3",
    )


OTHER = {"configuration": "knob=3", "depends_on_machine": False}


def test_an_effect_of_different_size_is_still_an_effect_and_says_so() -> None:
    across, verdict = compared(*measured({"lab1": 0.9, "lab2": 0.7}, 12))
    assert across.agreement == "differ"
    assert verdict.verdict == "improves"
    assert "by how much depends on the machine: −10" in verdict.reason


def test_equivalent_together_is_not_said_of_opposite_effects() -> None:
    # Neither is certain by itself, and yet they are not the same.
    across, verdict = compared(*measured({"lab1": 0.97, "lab2": 1.03}, 6, spread=0.02))
    assert {machine.verdict for machine in across.machines} == {"undecided"}
    assert across.agreement == "depends"
    assert verdict.verdict == "undecided"
    assert not verdict.depends_on_machine, "more blocks may still tell"


def test_equal_effects_are_seldom_said_to_differ() -> None:
    comparisons = [compared(*measured({"lab1": 0.95, "lab2": 0.95}, 8, spread=0.02, seed=n))[0] for n in range(100)]
    wrong = sum(comparison.agreement in ("differ", "depends") for comparison in comparisons)
    assert stats.binomtest(wrong, 100, 0.05, alternative="greater").pvalue > 0.001, wrong


def test_the_test_is_welchs_where_there_are_two_machines() -> None:
    """Two samples: Alexander and Govern's approximation is close to Welch's t test."""
    trials, machines = measured({"lab1": 0.95, "lab2": 0.96}, 30, spread=0.02)
    across, _ = compared(trials, machines)
    values: dict[int, dict[Any, Any]] = {trial.slot.block: {} for trial in trials}
    for trial in trials:
        values[trial.slot.block][trial.slot.configuration] = np.log(trial.metrics["elapsed"])
    ratios = {
        name: [v["knob=2"] - v["knob=1"] for b, v in values.items() if machines[b] == name] for name in ("lab1", "lab2")
    }
    welch = stats.ttest_ind(ratios["lab1"], ratios["lab2"], equal_var=False).pvalue
    assert across.p_value == pytest.approx(welch, rel=0.05)


def test_figures_that_never_vary_have_no_test() -> None:
    across, verdict = compared(*measured({"lab1": 0.9, "lab2": 0.9}, 8, spread=0, speeds=False))
    assert across.p_value is None
    assert across.agreement == "alike"
    assert verdict.verdict == "improves"


def test_a_single_block_on_a_machine_tells_nothing_yet() -> None:
    across, _ = compared(*measured({"lab1": 0.9, "lab2": 0.9}, 1))
    assert across.agreement == "unknown"


def test_a_finding_that_a_machine_contradicts_is_left_open() -> None:
    """Findings are judged as for the effects of factors, and the lines of a profile."""
    trials, machines = measured({"lab1": 0.8, "lab2": 1.1}, 12)
    clean = clean_trials(trials)

    def judged(clean: Clean) -> tuple[Verdict, ...]:
        return judge(BOTH, clean, [ELAPSED], smallest_effect=0.02)

    assert judged(on_machine(clean, machines, "lab1"))[0].verdict == "improves"
    (left,) = undisputed(judged(clean), clean, machines, judged)
    assert left.verdict == "undecided"
    assert left.reason.startswith("it depends on the machine: −")
    assert left.reason.endswith("on lab2 (worsens)")
    agreed, there = measured({"lab1": 0.8, "lab2": 0.8}, 12)
    (remaining,) = undisputed(judged(clean_trials(agreed)), clean_trials(agreed), there, judged)
    assert remaining.verdict == "improves"
