"""Machines as a sample, and what tells them apart: against published figures, another program, and a known truth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from benchmarks.fleet.simulated import ALPHA, SIZES, Cell, simulated
from scipy import stats
from tests.analysis.test_machines import BOTH, ELAPSED, measured

from ajuste.analysis.machines import across_machines, by_machine, machine_values, on_machine
from ajuste.analysis.pairs import clean_trials
from ajuste_fleet.effects import differing_group, fleet_effects, splits
from ajuste_fleet.model import FleetEffect


def inventory(**facts: Any) -> dict[str, Any]:
    nodes, kernel = facts.get("nodes", 2), facts.get("kernel", "6.1.0")
    cpu = {"cpus": facts.get("cpus", 8), "model": "EPYC", "sockets": 1, "threads_per_core": 2}
    return {"numa": dict.fromkeys(map(str, range(nodes))), "cpu": cpu, "kernel": {"release": kernel}}


def fleet(effects: Mapping[str, float], inventories: Mapping[str, Mapping[str, Any]], blocks: int = 12) -> FleetEffect:
    trials, machines = measured(effects, blocks, spread=0.02)
    clean = clean_trials(trials)
    across = across_machines(BOTH, clean, [ELAPSED], [], machines, confidence=0.95, smallest_effect=0.02)
    parts = by_machine(clean, machines)
    (effect,) = fleet_effects(
        across, lambda machine: machine_values(parts, "knob=1", machine, "elapsed"), inventories, alpha=0.05
    )
    return effect


def test_machines_are_divided_as_their_blocks_are() -> None:
    trials, machines = measured({"lab1": 0.9, "lab2": 0.9, "lab3": 0.8}, 5)
    clean = clean_trials(trials[:-3])
    parts = by_machine(clean, machines)
    for name in ("lab1", "lab2", "lab3"):
        alone = on_machine(clean, machines, name)
        assert (parts[name].blocks == alone.blocks).all()
        assert (parts[name].rows == alone.rows).all()


def test_those_that_differ_are_named_by_what_they_have_in_common() -> None:
    names = [f"lab{n:02}" for n in range(24)]
    slow = set(names[:4])
    known = {name: inventory(nodes=1 if name in slow else 2, cpus=8 * (1 + n % 3)) for n, name in enumerate(names)}
    effect = fleet({name: 1.2 if name in slow else 0.85 for name in names}, known)
    assert effect.verdicts == {"improves": 20, "worsens": 4}
    assert effect.differing is not None
    assert (effect.differing.fact, set(effect.differing.machines)) == ("one NUMA node", slow)
    assert effect.differing.estimate == pytest.approx(1.2, rel=0.02)
    assert effect.differing.others_estimate == pytest.approx(0.85, rel=0.02)
    assert "improves on 20 of 24 machines, worsens on 4" in effect.says
    assert "4 with one NUMA node" in effect.says


def test_another_fact_that_divides_them_alike_is_named_as_well() -> None:
    names = [f"lab{n:02}" for n in range(20)]
    known = {
        name: inventory(nodes=1 if n < 4 else 4, kernel="5.10" if n < 4 else "6.1") for n, name in enumerate(names)
    }
    effect = fleet({name: 1.2 if n < 4 else 0.85 for n, name in enumerate(names)}, known)
    assert effect.differing is not None
    assert {effect.differing.fact, *effect.differing.also} == {"one NUMA node", "Linux 5.10"}


def test_machines_that_differ_by_no_known_fact_are_not_explained() -> None:
    names = [f"lab{n:02}" for n in range(20)]
    known = {name: inventory(cpus=8 * (1 + n % 3)) for n, name in enumerate(names)}
    effect = fleet({name: 1.2 if n % 2 else 0.85 for n, name in enumerate(names)}, known)
    assert effect.differing is None
    assert effect.spread is not None
    assert effect.spread > 1.1


def test_a_fact_of_one_machine_or_that_one_does_not_tell_divides_none() -> None:
    assert not list(splits([inventory(nodes=1), *[inventory() for _ in range(5)]]))
    unknown: dict[str, Any] = {}
    assert not list(splits([inventory(nodes=1), inventory(nodes=1), inventory(), inventory(), unknown]))
    (split,) = splits([inventory(nodes=1), inventory(nodes=1), inventory(), inventory()])
    assert split.words == "one NUMA node"


def test_numbers_are_divided_at_a_limit_and_words_by_what_is_said() -> None:
    words = {
        split.words for split in splits([inventory(cpus=4 * (1 + n // 2), kernel=f"6.{n // 4}") for n in range(8)])
    }
    assert words == {"4 CPUs", "4 to 8 CPUs", "16 CPUs", "Linux 6.0"}


def test_too_few_machines_are_no_sample() -> None:
    trials, machines = measured({"lab1": 0.9, "lab2": 0.8}, 8)
    clean = clean_trials(trials)
    across = across_machines(BOTH, clean, [ELAPSED], [], machines, confidence=0.95, smallest_effect=0.02)
    parts = by_machine(clean, machines)
    values = partial(machine_values, parts, "knob=1", column="elapsed")
    assert fleet_effects(across, values, {}, alpha=0.05) == ()


def test_the_same_machines_have_the_same_group() -> None:
    random = np.random.default_rng(3)
    names = tuple(f"lab{n}" for n in range(12))
    known = {name: inventory(nodes=1 + n % 2) for n, name in enumerate(names)}
    effects = random.normal(0, 1, 12) + np.resize([0, 3], 12)
    first, second = (differing_group(names, effects, known, "difference", alpha=0.05) for _ in range(2))
    assert first is not None
    assert first == second


@pytest.mark.parametrize("machines", [5, 40])
def test_the_interval_of_the_mean_holds_with_few_blocks_on_each_machine(machines: int) -> None:
    """Intervals from each machine's own variance hold in 90 % of such fleets."""
    rates = simulated(Cell(machines, (3,), 0.5, 0.0), 400, permutations=False)
    assert stats.binomtest(round(400 * rates.mean), 400, 0.93, alternative="less").pvalue > 0.01, rates


@pytest.mark.parametrize("blocks", [2, 3])
def test_many_machines_with_few_blocks_are_seldom_said_to_differ(blocks: int) -> None:
    """Alexander and Govern's test alone said so of 33 % and 14 % of such fleets."""
    rates = simulated(Cell(40, (blocks,), 0.0, 0.0), 200, permutations=False)
    assert stats.binomtest(round(200 * rates.differ), 200, ALPHA, alternative="greater").pvalue > 0.01, rates


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machines", SIZES)
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_2000_fleets_have_the_promised_coverage(machines: int, spread: float) -> None:
    rates = simulated(Cell(machines, (3, 12), 0.5, spread), 2000, permutations=not spread)
    assert rates.mean >= 0.93, rates
    if not spread:
        assert rates.differ <= ALPHA, rates
        assert stats.binomtest(round(2000 * rates.named), 2000, ALPHA, alternative="greater").pvalue > 0.001, rates
