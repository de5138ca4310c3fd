"""Machines: whether an effect is the same on all that a run was measured on.

Blocks are never split, so a machine's speed is in none of the ratios within blocks; but the effect itself can be
another one there. Machine is a factor whose interaction with the configuration is tested on the effects of the blocks,
which scatter more on one machine than on another: by the test of Alexander and Govern (1994, "A new and simpler
approximation for ANOVA under variance heterogeneity", Journal of Educational Statistics 19), in SciPy's form, and by
that of Mehrotra (1997, "Improving the Brown-Forsythe solution to the generalized Behrens-Fisher problem",
Communications in Statistics - Simulation and Computation 26). Both must reject: the first one does so too often where
many machines have few blocks, the second one where noise differs (``python -m benchmarks fleet``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Clean, pairs
from ajuste.analysis.verdict import family
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, compared
from ajuste.model.verdict import AcrossMachines, Agreement, Finding, MachineEffect, Verdict
from ajuste.model.wording import change, count_of, listed
from ajuste_stats.decision import verdict_word
from ajuste_stats.effects import Effect, effect, margin
from ajuste_stats.heterogeneity import equality_p_value
from ajuste_stats.pairs import Pairs
from ajuste_stats.terms import Scale, Word

Machines = Mapping[int, str]
"""The machine of every block; empty where there is only one."""

FindingT = TypeVar("FindingT", bound=Finding)

MOST_NAMED: Final = 4
"""Machines that a sentence names each; of more it counts the verdicts."""


@dataclass(frozen=True)
class _Part:
    machine: str
    pairs: Pairs
    effect: Effect


def on_machine(clean: Clean, machines: Machines, name: str) -> Clean:
    """Return the clean trials of the blocks that one machine has measured."""
    on_it = np.array([machines.get(int(block)) == name for block in clean.blocks], np.bool_)
    return Clean(clean.measured, clean.blocks[on_it], clean.rows[:, on_it])


def machine_names(machines: Machines) -> tuple[str, ...]:
    """Return all machines, by name."""
    return tuple(sorted(set(machines.values())))


def by_machine(clean: Clean, machines: Machines) -> dict[str, Clean]:
    """The clean trials of each machine, by its name."""
    names = machine_names(machines)
    places = {name: place for place, name in enumerate(names)}
    owners = np.array([places.get(machines.get(int(block), ""), -1) for block in clean.blocks], np.int64)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(len(names) + 1))
    return {
        name: Clean(clean.measured, clean.blocks[indices], clean.rows[:, indices])
        for place, name in enumerate(names)
        for indices in [order[bounds[place] : bounds[place + 1]]]
    }


class MachineValues(NamedTuple):
    """The effect of each block, as logarithm of a ratio or as difference, by machine."""

    names: tuple[str, ...]
    values: tuple[NDArray[np.float64], ...]


def machine_values(parts: Mapping[str, Clean], baseline: str, across: AcrossMachines, column: str) -> MachineValues:
    """The effects that ``across`` compares, of the machines that have any."""
    paired_values = {
        effect.machine: pairs(parts[effect.machine], baseline, across.configuration, column)
        for effect in across.machines
    }
    return MachineValues(
        tuple(paired_values), tuple(_values(machine_pairs, across.scale) for machine_pairs in paired_values.values())
    )


def across_machines(
    configurations: Sequence[Configuration],
    clean: Clean,
    deciding: Sequence[Metric],
    described: Sequence[Metric],
    machines: Machines,
    *,
    confidence: float,
    smallest_effect: float,
) -> tuple[AcrossMachines, ...]:
    """Return every comparison with the baseline, metric by metric; none with fewer than two machines.

    The intervals of all machines hold together with those of the whole family, at all numbers of blocks.
    """
    names = machine_names(machines)
    if len(names) < 2:
        return ()
    alpha = family(configurations, deciding, confidence).alpha
    parts = by_machine(clean, machines)
    rows = []
    for metric in (*deciding, *described):
        for made in compared(configurations):
            all_of_it = effect(pairs(clean, made.reference, made.name, metric.column), metric, alpha)
            machine_parts = _parts(parts, (made.reference, made.name), metric, alpha / len(names))
            if all_of_it is not None and machine_parts:
                rows.append(_across(made.name, metric, all_of_it, machine_parts, alpha, smallest_effect))
    return tuple(rows)


def _parts(by_machine: Mapping[str, Clean], both: tuple[str, str], metric: Metric, alpha: float) -> list[_Part]:
    machine_parts = []
    for name, clean in by_machine.items():
        matched = pairs(clean, *both, metric.column)
        if (its_effect := effect(matched, metric, alpha)) is not None:
            # Seldom events are asked of all machines together.
            machine_parts.append(_Part(name, matched, replace(its_effect, seen=None)))
    return machine_parts


def _across(
    configuration: str, metric: Metric, whole: Effect, parts: Sequence[_Part], alpha: float, smallest_effect: float
) -> AcrossMachines:
    effects = tuple(
        MachineEffect(
            machine=part.machine,
            blocks=part.effect.interval.n,
            verdict=verdict_word(part.effect, metric, margin(part.effect, smallest_effect)),
            estimate=part.effect.estimate,
            low=part.effect.low,
            high=part.effect.high,
        )
        for part in parts
    )
    values = [_values(part.pairs, whole.scale) for part in parts]
    p_value = equality_p_value(values) if metric.quantile is None else None
    agreement = _agreement(parts, effects, p_value, alpha, smallest_effect)
    return AcrossMachines(
        configuration=configuration,
        metric=metric.name,
        unit=metric.unit,
        scale=whole.scale,
        machines=effects,
        p_value=p_value,
        agreement=agreement,
        says=_agreement_sentence(agreement, effects, whole, metric),
    )


def _values(matched: Pairs, scale: Scale) -> NDArray[np.float64]:
    if scale == "ratio":
        return np.log(matched.other) - np.log(matched.baseline)
    return matched.other - matched.baseline


def _agreement(
    parts: Sequence[_Part],
    effects: Sequence[MachineEffect],
    p_value: float | None,
    alpha: float,
    smallest_effect: float,
) -> Agreement:
    if _contradict([(effect.verdict, effect.estimate) for effect in effects], parts[0].effect.scale):
        return "depends"
    if p_value is None:
        return "alike" if len(parts) > 1 and all(effect.verdict != "undecided" for effect in effects) else "unknown"
    if p_value >= alpha:
        return "alike"
    if all(effect.verdict != "undecided" for effect in effects):
        return "differ"
    sides = set()
    for part in parts:
        mean = part.effect.interval.mean
        sides.add(0 if abs(mean) < margin(part.effect, smallest_effect) else 1 if mean > 0 else -1)
    return "differ" if len(sides) == 1 else "depends"


def _contradict(verdicts: Sequence[tuple[Word, float | None]], scale: Scale) -> bool:
    # Return whether some certain verdicts differ, or go with opposite changes of a metric without direction.
    none = 1.0 if scale == "ratio" else 0.0
    certain = [(word, word == "differs" and (at or 0.0) > none) for word, at in verdicts if word != "undecided"]
    return len(set(certain)) > 1


def _agreement_sentence(agreement: Agreement, effects: Sequence[MachineEffect], whole: Effect, metric: Metric) -> str:
    if len(effects) > MOST_NAMED:
        each = counts_in_words(counted(effects))
    else:
        each = listed(
            [
                f"{change(effect.estimate, whole.scale, metric.unit)} on {effect.machine} ({effect.verdict})"
                for effect in effects
            ]
        )
    if agreement == "depends":
        return f"it depends on the machine: {each}"
    if agreement == "differ":
        return f"by how much depends on the machine: {each}"
    if agreement == "alike":
        return "no difference between the machines is seen"
    return "too few blocks on more than one machine to tell whether they differ"


def counts_in_words(counts: Mapping[Word, int]) -> str:
    """``improves on 31 of 40 machines, worsens on 2, undecided on 7``."""
    total = count_of(sum(counts.values()), "machine")
    first, *others = (f"{word} on {count:,}" for word, count in counts.items())
    return ", ".join([f"{first} of {total}", *others])


def counted(effects: Sequence[MachineEffect]) -> dict[Word, int]:
    """Return on how many machines each verdict stands, the most frequent first and undecided last."""
    counts = Counter(machine_effect.verdict for machine_effect in effects)
    return dict(sorted(counts.items(), key=lambda item: (item[0] == "undecided", -item[1])))


def right_for_all(verdicts: Sequence[Verdict], across: Sequence[AcrossMachines]) -> tuple[Verdict, ...]:
    """Return ``verdicts`` that hold on each machine; more blocks do not decide where machines certainly differ."""
    by_subject = {(row.configuration, row.metric): row for row in across}
    return tuple(_right(verdict, by_subject.get((verdict.configuration, verdict.metric))) for verdict in verdicts)


def _right(verdict: Verdict, across: AcrossMachines | None) -> Verdict:
    if across is None or across.agreement not in ("differ", "depends"):
        return verdict
    if across.agreement == "differ":
        return verdict.model_copy(update={"reason": f"{verdict.reason}; {across.says}"})
    certain = _contradict([(effect.verdict, effect.estimate) for effect in across.machines], across.scale)
    update = {"verdict": "undecided", "reason": across.says, "depends_on_machine": certain}
    return verdict.model_copy(update={**update, "more_blocks": None if certain else verdict.more_blocks})


def undisputed(
    findings: Sequence[FindingT], clean: Clean, machines: Machines, judge: Callable[[Clean], Sequence[FindingT]]
) -> tuple[FindingT, ...]:
    """Return ``findings`` without those that ``judge`` certainly contradicts for the blocks of one machine."""
    if len(machine_names(machines)) < 2 or not findings:
        return tuple(findings)
    certain: dict[tuple[str, str], dict[str, FindingT]] = {}
    for name in machine_names(machines):
        for finding in judge(on_machine(clean, machines, name)):
            if finding.verdict != "undecided":
                certain.setdefault((finding.subject, finding.metric), {})[name] = finding
    return tuple(_undisputed(finding, certain.get((finding.subject, finding.metric), {})) for finding in findings)


def _undisputed(finding: FindingT, by_machine: Mapping[str, FindingT]) -> FindingT:
    words = [(other.verdict, other.estimate) for other in by_machine.values()]
    if not _contradict([*words, (finding.verdict, finding.estimate)], finding.scale):
        return finding
    each = listed([f"{other.effect} on {name} ({other.verdict})" for name, other in by_machine.items()])
    update: dict[str, object] = {
        "verdict": "undecided",
        "reason": f"it depends on the machine: {each}",
        "depends_on_machine": _contradict(words, finding.scale),
    }
    if hasattr(finding, "role"):
        update["role"] = "undecided"
    return finding.model_copy(update=update)
