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

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc

from ajuste.analysis.effects import Effect, effect, margin
from ajuste.analysis.pairs import Clean, Pairs, pairs
from ajuste.analysis.verdict import family, word_of
from ajuste.model.metric import Metric, Scale
from ajuste.model.trial import Configuration
from ajuste.model.verdict import AcrossMachines, Agreement, Finding, MachineEffect, Verdict, Word
from ajuste.model.wording import change, count_of, listed

Machines = Mapping[int, str]
"""The machine of every block; empty where there is only one."""

Found = TypeVar("Found", bound=Finding)

MOST_NAMED: Final = 4
"""Machines that a sentence names each; of more it counts the verdicts."""


@dataclass(frozen=True)
class _Part:
    """What one machine says: its pairs, and their effect."""

    machine: str
    pairs: Pairs
    effect: Effect


def on_machine(clean: Clean, machines: Machines, name: str) -> Clean:
    """The clean trials of the blocks that one machine has measured."""
    own = np.array([machines.get(int(block)) == name for block in clean.blocks], np.bool_)
    return Clean(clean.measured, clean.blocks[own], clean.rows[:, own])


def names_of(machines: Machines) -> tuple[str, ...]:
    """All machines, by name."""
    return tuple(sorted(set(machines.values())))


def by_machine(clean: Clean, machines: Machines) -> dict[str, Clean]:
    """The clean trials of each machine, by its name."""
    names = names_of(machines)
    places = {name: place for place, name in enumerate(names)}
    owners = np.array([places.get(machines.get(int(block), ""), -1) for block in clean.blocks], np.int64)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(len(names) + 1))
    return {
        name: Clean(clean.measured, clean.blocks[own], clean.rows[:, own])
        for place, name in enumerate(names)
        for own in [order[bounds[place] : bounds[place + 1]]]
    }


class MachineValues(NamedTuple):
    """The effect of each block, as logarithm of a ratio or as difference, by machine."""

    names: tuple[str, ...]
    values: tuple[NDArray[np.float64], ...]


def machine_values(parts: Mapping[str, Clean], baseline: str, across: AcrossMachines, column: str) -> MachineValues:
    """The effects that ``across`` compares, of the machines that have any."""
    own = {name: pairs(parts[name], baseline, across.configuration, column) for name in map(_name, across.machines)}
    return MachineValues(tuple(own), tuple(_values(one, across.scale) for one in own.values()))


def _name(one: MachineEffect) -> str:
    return one.machine


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
    """Every comparison with the baseline, metric by metric; none where fewer than two machines have measured.

    The intervals of all machines hold together with those of the whole family, at all numbers of blocks.
    """
    names = names_of(machines)
    if len(names) < 2:
        return ()
    baseline = next(c for c in configurations if c.baseline)
    alpha = family(configurations, deciding, confidence).alpha
    parts = by_machine(clean, machines)
    found = []
    for metric in (*deciding, *described):
        for other in (c for c in configurations if not c.baseline):
            all_of_it = effect(pairs(clean, baseline.name, other.name, metric.column), metric, alpha)
            own = _parts(parts, (baseline.name, other.name), metric, alpha / len(names))
            if all_of_it is not None and own:
                found.append(_across(other.name, metric, all_of_it, own, alpha, smallest_effect))
    return tuple(found)


def _parts(by_machine: Mapping[str, Clean], both: tuple[str, str], metric: Metric, alpha: float) -> list[_Part]:
    found = []
    for name, clean in by_machine.items():
        own = pairs(clean, *both, metric.column)
        if (its_effect := effect(own, metric, alpha)) is not None:
            found.append(_Part(name, own, its_effect))
    return found


def _across(
    configuration: str, metric: Metric, whole: Effect, parts: Sequence[_Part], alpha: float, smallest_effect: float
) -> AcrossMachines:
    effects = tuple(
        MachineEffect(
            machine=part.machine,
            blocks=part.effect.interval.n,
            verdict=word_of(part.effect, metric, margin(part.effect, smallest_effect)),
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
        says=_says(agreement, effects, whole, metric),
    )


def _values(own: Pairs, scale: Scale) -> NDArray[np.float64]:
    if scale == "ratio":
        return np.log(own.other) - np.log(own.baseline)
    return own.other - own.baseline


def equality_p_value(samples: Sequence[NDArray[np.float64]]) -> float | None:
    """Of equal means; ``None`` where a sample does not tell its own spread."""
    if len(samples) < 2 or any(len(sample) < 2 or np.ptp(sample) == 0 for sample in samples):
        return None
    # Alexander and Govern (1994), "A new and simpler approximation for ANOVA under variance heterogeneity", Journal of
    # Educational Statistics 19: each mean's t against the weighted one, made normal (Hill 1970, algorithm 395).
    means = np.array([np.mean(sample) for sample in samples])
    freedom = np.array([len(sample) - 1.0 for sample in samples])
    errors = np.array([np.std(sample, ddof=1) / math.sqrt(len(sample)) for sample in samples])
    t = (means - np.average(means, weights=errors**-2.0)) / errors
    a = freedom - 0.5
    b = 48 * a**2
    c = np.sqrt(a * np.log1p(t**2 / freedom))
    z = c + (c**3 + 3 * c) / b - (4 * c**7 + 33 * c**5 + 240 * c**3 + 855 * c) / (b * (10 * b + 8 * c**4 + 1000))
    found = max(chdtrc(len(samples) - 1, float(np.sum(z**2))), _brown_forsythe(means, freedom + 1, errors))
    return None if math.isnan(found) else found


def _brown_forsythe(means: NDArray[np.float64], sizes: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    # Brown and Forsythe's F* with both degrees of freedom of Mehrotra (1997).
    variances, total = errors**2 * sizes, float(np.sum(sizes))
    between = float(np.sum(sizes * (means - np.average(means, weights=sizes)) ** 2))
    shares = (1 - sizes / total) * variances
    within = float(np.sum(shares))
    above = float(
        np.sum(variances**2) + np.sum(sizes * variances / total) ** 2 - 2 * np.sum(sizes * variances**2 / total)
    )
    return float(fdtrc(within**2 / above, within**2 / np.sum(shares**2 / (sizes - 1)), between / within))


def _agreement(
    parts: Sequence[_Part],
    effects: Sequence[MachineEffect],
    p_value: float | None,
    alpha: float,
    smallest_effect: float,
) -> Agreement:
    if _contradict([(one.verdict, one.estimate) for one in effects], parts[0].effect.scale):
        return "depends"
    if p_value is None:
        return "alike" if len(parts) > 1 and all(one.verdict != "undecided" for one in effects) else "unknown"
    if p_value >= alpha:
        return "alike"
    if all(one.verdict != "undecided" for one in effects):
        return "differ"
    sides = {_side(part.effect, margin(part.effect, smallest_effect)) for part in parts}
    return "differ" if len(sides) == 1 else "depends"


def _contradict(said: Sequence[tuple[Word, float | None]], scale: Scale) -> bool:
    """Whether some of these words, each with its estimate, are certain and yet not the same. Of a metric that has no
    better direction it matters in which one it differs.
    """
    none = 1.0 if scale == "ratio" else 0.0
    certain = [(word, word == "differs" and (at or 0.0) > none) for word, at in said if word != "undecided"]
    return len(set(certain)) > 1


def _side(found: Effect, zone: float) -> int:
    """Where the estimate lies: below, within or above what is equivalent."""
    mean = found.interval.mean
    return 0 if abs(mean) < zone else 1 if mean > 0 else -1


def _says(agreement: Agreement, effects: Sequence[MachineEffect], whole: Effect, metric: Metric) -> str:
    if len(effects) > MOST_NAMED:
        each = counts_in_words(counted(effects))
    else:
        said = [f"{change(one.estimate, whole.scale, metric.unit)} on {one.machine} ({one.verdict})" for one in effects]
        each = listed(said)
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
    """How many machines each verdict was given on, the word of the most first, what is undecided last."""
    counts = Counter(one.verdict for one in effects)
    return dict(sorted(counts.items(), key=lambda item: (item[0] == "undecided", -item[1])))


def right_for_all(verdicts: Sequence[Verdict], across: Sequence[AcrossMachines]) -> tuple[Verdict, ...]:
    """``verdicts``, of which none says what is not so on one of the machines.

    Where what two machines say for certain differs, more blocks would not decide it.
    """
    by_subject = {(one.configuration, one.metric): one for one in across}
    return tuple(_right(verdict, by_subject.get((verdict.configuration, verdict.metric))) for verdict in verdicts)


def _right(verdict: Verdict, found: AcrossMachines | None) -> Verdict:
    if found is None or found.agreement not in ("differ", "depends"):
        return verdict
    if found.agreement == "differ":
        return verdict.model_copy(update={"reason": f"{verdict.reason}; {found.says}"})
    certain = _contradict([(one.verdict, one.estimate) for one in found.machines], found.scale)
    update = {"verdict": "undecided", "reason": found.says, "depends_on_machine": certain}
    return verdict.model_copy(update={**update, "more_blocks": None if certain else verdict.more_blocks})


def undisputed(
    found: Sequence[Found], clean: Clean, machines: Machines, judge: Callable[[Clean], Sequence[Found]]
) -> tuple[Found, ...]:
    """``found`` without what ``judge`` says for certain to be otherwise of one machine's blocks alone: for effects of
    factors and of lines.
    """
    if len(names_of(machines)) < 2 or not found:
        return tuple(found)
    said: dict[tuple[str, str], dict[str, Found]] = {}
    for name in names_of(machines):
        for one in judge(on_machine(clean, machines, name)):
            if one.verdict != "undecided":
                said.setdefault((one.subject, one.metric), {})[name] = one
    return tuple(_undisputed(one, said.get((one.subject, one.metric), {})) for one in found)


def _undisputed(finding: Found, said: Mapping[str, Found]) -> Found:
    words = [(one.verdict, one.estimate) for one in said.values()]
    if not _contradict([*words, (finding.verdict, finding.estimate)], finding.scale):
        return finding
    each = listed([f"{one.effect} on {name} ({one.verdict})" for name, one in said.items()])
    update: dict[str, object] = {
        "verdict": "undecided",
        "reason": f"it depends on the machine: {each}",
        "depends_on_machine": _contradict(words, finding.scale),
    }
    if hasattr(finding, "role"):
        update["role"] = "undecided"
    return finding.model_copy(update=update)
