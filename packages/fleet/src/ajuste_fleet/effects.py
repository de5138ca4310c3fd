"""Fleets: machines as a sample of machines, by random effects; and which facts tell those apart that differ.

The mean over machines is that of DerSimonian and Laird (1986, "Meta-analysis in clinical trials", Controlled Clinical
Trials 7) with the interval of Hartung and Knapp (2001, "A refined method for the meta-analysis of controlled clinical
trials with binary outcome", Statistics in Medicine 20) and Sidik and Jonkman (2002, the same journal, 21), never
narrower than with known errors (Röver, Knapp and Friede 2015, BMC Medical Research Methodology 15). Errors within
machines are those of one variance, pooled over all: with the few blocks of a machine its own is so uncertain that the
interval would be too narrow (``python -m benchmarks fleet``). A new machine's effect lies in the prediction interval of
Higgins, Thompson and Spiegelhalter (2009, "A re-evaluation of random-effects meta-analysis", Journal of the Royal
Statistical Society A 172).

Facts are judged by permutation: effects change places among machines, and the largest difference that any fact makes is
the measure (Westfall and Young 1993, "Resampling-Based Multiple Testing"), so that one error rate holds for all facts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.machines import MachineValues, counted, counts_in_words
from ajuste.model.verdict import AcrossMachines
from ajuste.model.wording import amount, change, count_of
from ajuste_fleet.model import FactGroup, FleetEffect
from ajuste_stats.effects import natural
from ajuste_stats.permutation import greatest_difference
from ajuste_stats.random_effects import pool_effects, pooled_variances
from ajuste_stats.terms import Scale

Floats = NDArray[np.float64]

FEWEST_MACHINES: Final = 3
"""Fewer are no sample."""
# Limits tried between the values of one fact.
_MOST_SPLITS: Final = 20


def fleet_effects(
    across: Sequence[AcrossMachines],
    values_of: Callable[[AcrossMachines], MachineValues],
    inventories: Mapping[str, Mapping[str, Any]],
    *,
    alpha: float,
) -> tuple[FleetEffect, ...]:
    """Return what is known of machines like these, for each comparison on at least three. ``values_of`` gives the
    effects of each machine's blocks, ``inventories`` say by name what the machines are.
    """
    fleet = []
    for comparison in across:
        values = values_of(comparison)
        if len(values.names) >= FEWEST_MACHINES and (errors := pooled_variances(values.values)) is not None:
            fleet.append(_fleet_effect(comparison, values, errors, inventories, alpha))
    return tuple(fleet)


def _fleet_effect(
    across: AcrossMachines,
    values: MachineValues,
    variances: Floats,
    inventories: Mapping[str, Mapping[str, Any]],
    alpha: float,
) -> FleetEffect:
    effects = np.array([np.mean(block_effects) for block_effects in values.values])
    combined = pool_effects(effects, variances)
    low, high = (natural(end, across.scale) for end in combined.interval(alpha))
    new_low, new_high = (natural(end, across.scale) for end in combined.prediction(alpha))
    counts = counted(across.machines)
    group = differing_group(values.names, effects, inventories, across.scale, alpha=alpha)
    fleet = FleetEffect(
        configuration=across.configuration,
        metric=across.metric,
        unit=across.unit,
        scale=across.scale,
        machines=len(effects),
        level=1 - alpha,
        estimate=natural(combined.mean, across.scale),
        low=low,
        high=high,
        spread=natural(math.sqrt(combined.variance), across.scale),
        new_low=new_low,
        new_high=new_high,
        verdicts=counts,
        differing=group,
        says="",
    )
    sentence = f"{counts_in_words(counts)}{f'; {_group_says(group, fleet)}' if group else ''}"
    return fleet.model_copy(update={"says": sentence})


def with_groups(across: Sequence[AcrossMachines], fleet: Sequence[FleetEffect]) -> tuple[AcrossMachines, ...]:
    """Return ``across``, where machines disagree with the group that differs."""
    groups = {
        (effect.configuration, effect.metric): _group_says(effect.differing, effect)
        for effect in fleet
        if effect.differing
    }
    group_texts = [groups.get((comparison.configuration, comparison.metric), "") for comparison in across]
    return tuple(
        comparison.model_copy(update={"says": f"{comparison.says}; {group}"})
        if group and comparison.agreement in ("depends", "differ")
        else comparison
        for comparison, group in zip(across, group_texts, strict=True)
    )


def _group_says(group: FactGroup, fleet: FleetEffect) -> str:
    here, there = (change(estimate, fleet.scale, fleet.unit) for estimate in (group.estimate, group.others_estimate))
    return f"{here} on the {len(group.machines):,} with {group.fact}, {there} on the other {group.others:,}"


# What is known of machines, and into which two parts each fact divides them.


class Fact(NamedTuple):
    """``read`` takes an inventory. Numbers are divided at a limit, words by their text: ``words`` names the machines
    from the least to the most of ``values``.
    """

    read: Callable[[Mapping[str, Any]], Any]
    words: Callable[[Sequence[Any]], str]


def _at(*keys: str) -> Callable[[Mapping[str, Any]], Any]:
    def read(inventory: Mapping[str, Any]) -> Any:
        value: Any = inventory
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    return read


def _count(noun: str) -> Callable[[Sequence[Any]], str]:
    def words(values: Sequence[Any]) -> str:
        low, high = values[0], values[-1]
        if low == high:
            return f"one {noun}" if low == 1 else count_of(low, noun)
        return f"{low:,} to {count_of(high, noun)}"

    return words


def _memory(values: Sequence[Any]) -> str:
    low, high = (amount(value, "B") for value in (values[0], values[-1]))
    return f"{low} of memory" if low == high else f"{low} to {high} of memory"


def _nodes(inventory: Mapping[str, Any]) -> int | None:
    nodes = inventory.get("numa")
    return max(1, len(nodes)) if isinstance(nodes, Mapping) else None


def _gib(inventory: Mapping[str, Any]) -> int | None:
    # What firmware and kernel keep for themselves makes no difference between machines.
    total = _at("memory", "total_bytes")(inventory)
    return max(1, round(total / 2**28)) * 2**28 if isinstance(total, int) else None


FACTS: Final = (
    Fact(_nodes, _count("NUMA node")),
    Fact(_at("cpu", "sockets"), _count("socket")),
    Fact(_at("cpu", "cpus"), _count("CPU")),
    Fact(_at("cpu", "threads_per_core"), _count("thread per core")),
    Fact(_gib, _memory),
    Fact(_at("cpu", "model"), lambda values: f"the CPU {values[0]}"),
    Fact(_at("kernel", "release"), lambda values: f"Linux {values[0]}"),
    Fact(
        _at("virtualisation", "machine"),
        lambda values: "no hypervisor" if values[0] == "none" else f"the hypervisor {values[0]}",
    ),
)


class _Split(NamedTuple):
    # `members` are the machines that `words` describe, and no more than half of all.
    words: str
    members: NDArray[np.bool_]


def splits(inventories: Sequence[Mapping[str, Any]]) -> Iterator[_Split]:
    """Yield into which two parts each fact divides the machines, each with at least two of them. A fact that is not
    known of all divides none.
    """
    for fact in FACTS:
        values = [fact.read(inventory) for inventory in inventories]
        if any(value is None for value in values):
            continue
        distinct = sorted(set(values))
        numbers = isinstance(distinct[0], int)
        step = max(1, len(distinct) // _MOST_SPLITS)
        for place in range(0, len(distinct) - (1 if numbers or len(distinct) < 3 else 0), step):
            inside = distinct[: place + 1] if numbers else [distinct[place]]
            members = np.array([value in inside for value in values])
            if 2 * np.count_nonzero(members) > len(values):
                members, inside = ~members, [value for value in distinct if value not in inside]
            if np.count_nonzero(members) < 2 or (not numbers and len(inside) > 1):
                continue
            yield _Split(fact.words(inside), members)


def differing_group(
    names: Sequence[str],
    effects: Floats,
    inventories: Mapping[str, Mapping[str, Any]],
    scale: Scale,
    *,
    alpha: float,
) -> FactGroup | None:
    """Return the machines whose ``effects`` differ most from the others', of all that a fact tells apart; ``None``
    where chance makes as large a difference more often than ``alpha``.
    """
    candidates = list(splits([inventories.get(name, {}) for name in names]))
    if not candidates or np.ptp(effects) == 0:
        return None
    members = np.array([split.members for split in candidates], np.float64).T
    # The same trials have the same answer.
    best, p_value = greatest_difference(effects, members, np.random.default_rng(1))
    if p_value > alpha:
        return None
    selected = candidates[best].members
    same = [
        split.words
        for split in candidates
        if np.array_equal(split.members, selected) or np.array_equal(~split.members, selected)
    ]
    return FactGroup(
        fact=candidates[best].words,
        machines=tuple(name for name, inside in zip(names, selected, strict=True) if inside),
        others=int(np.count_nonzero(~selected)),
        estimate=natural(float(np.mean(effects[selected])), scale),
        others_estimate=natural(float(np.mean(effects[~selected])), scale),
        p_value=p_value,
        also=tuple(words for words in same if words != candidates[best].words),
    )
