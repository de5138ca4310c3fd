"""Explanations for the reader of a report: what the factors are, where, and which stand in for another."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from ajuste.catalogue.loader import Catalogue
from ajuste.model.boot import BOOT_KERNEL, BOOT_PREFIX, is_boot_name
from ajuste.model.explained import Explained
from ajuste.model.trial import COMMAND_FACTOR, Configuration, Factor
from ajuste.model.wording import count_of, shell_line
from ajuste.study.factors import (
    KERNEL_ARGUMENTS,
    Knob,
    names_set,
    profile_lines,
    service_called,
    service_kind,
    service_part,
    workload_parameter,
)
from ajuste.study.schema import FactorTable, Study
from ajuste_stats.subsets import ORDERS, is_exact


def explain(
    study: Study, knobs: Mapping[str, Mapping[str, Knob]], factors: Sequence[Factor], catalogue: Catalogue
) -> tuple[Explained, ...]:
    """Explain what every factor sets, in the factors' order; one with settings first by itself. ``knobs`` by name and
    kernel spec.
    """
    explanations: dict[str, Explained] = {}
    for table, factor in zip(study.factors, factors, strict=True):
        if table.settings:
            explanations[factor.name] = _several(table)
        for name in names_set(table):
            by_kernel = tuple(knobs.get(name, {}).values())
            for knob in by_kernel:
                explanations.setdefault(knob.tunable.name, _explain_knob(knob, by_kernel))
            if not by_kernel:
                explanations[name] = _explain(name, study, catalogue)
        if table.is_condition and factor.name in explanations:
            explanations[factor.name] = explanations[factor.name].model_copy(update={"condition": True})
    return tuple(explanations.values())


def _several(table: FactorTable) -> Explained:
    if not any(table.settings.values()):
        what = f"It sets nothing: what runs beside the workload depends on it ({', '.join(table.settings)})."
        return Explained(name=table.name, title="a condition", what=what, unit="")
    levels: list[str] = []
    for level, settings in table.settings.items():
        changes = ", ".join(f"{name} = {value}" for name, value in settings.items())
        levels.append(f"{level}: {changes or 'nothing'}")
    return Explained(
        name=table.name, title="several settings at once", what=f"What each level sets. {'; '.join(levels)}.", unit=""
    )


def _explain_boot(name: str) -> Explained:
    if name == BOOT_KERNEL:
        what = "An installed kernel, which this machine boots for the trials; default: the one that it boots by itself."
        return Explained(name=name, title="the kernel of this machine", what=what, unit="", where="the boot loader")
    word = name.removeprefix(BOOT_PREFIX)
    what = f"The word {word} of the kernel's command line; default: as this machine boots by itself."
    return Explained(name=name, title=f"{word}, set at boot", what=what, unit="", where="the kernel's command line")


def _explain(name: str, study: Study, catalogue: Catalogue) -> Explained:
    if parameter := workload_parameter(name):
        kind = catalogue.workloads[study.workload.kind or ""]
        text = kind.parameters[parameter]
        return Explained(
            name=name,
            title=f"{parameter} of {kind.title}",
            what=text.what,
            unit=text.unit,
            default=text.default,
            where="the workload's command line",
        )
    if part := service_part(name, study.workload):
        table = service_called(part, study.workload)
        if not part.is_attribute:
            server = service_kind(table, catalogue)
            what = f"A setting of {server.title if server else table.called}; its own manual explains it."
            where = "the service's command line"
            return Explained(
                name=name, title=f"{part.name} of the service {table.called}", what=what, unit="", where=where
            )
        tunable = catalogue.find_tunable(part.name)
        return Explained(
            name=name,
            title=f"{tunable.title} of the service {table.called}",
            what=tunable.what,
            unit=tunable.unit,
            default=tunable.default,
            where=f"an attribute of the service's process: {part.name}",
        )
    if name == COMMAND_FACTOR:
        commands = "; ".join(f"{v.name}: {shell_line(shlex.join(v.command))}" for v in study.workload.variants)
        return Explained(name=name, title="the command", what=f"What is run. {commands}", unit="")
    if is_boot_name(name):
        return _explain_boot(name)
    if name == KERNEL_ARGUMENTS:
        return Explained(
            name=name,
            title="the kernel's command line",
            what="Words added to the guest's command line; they apply from its boot.",
            unit="",
        )
    return Explained(
        name=name,
        title="the kernel",
        what="The Linux kernel that is booted; the rest of the machine stays the same.",
        unit="",
    )


def successor_notes(knobs: Mapping[str, Mapping[str, Knob]]) -> tuple[str, ...]:
    """Return a sentence for every tunable that was varied in place of another."""
    notes = [
        f"{knob.replaced.name} is not supported by {spec}; its successor {knob.tunable.name}, a related but "
        "different tunable, varies instead"
        for by_kernel in knobs.values()
        for spec, knob in by_kernel.items()
        if knob.replaced is not None
    ]
    return tuple(dict.fromkeys(notes))


def _explain_knob(knob: Knob, siblings: Sequence[Knob]) -> Explained:
    tunable = knob.tunable
    places = dict.fromkeys(other.where for other in siblings if other.tunable.name == tunable.name)
    note = ""
    if knob.replaced is not None:
        replaced = knob.replaced.name
        note = f"The successor of {replaced}, which this kernel does not have: a related but different tunable."
    return Explained(
        name=tunable.name,
        title=tunable.title,
        what=tunable.what,
        unit=tunable.unit,
        default=tunable.default,
        where=" or ".join(places),
        note=note,
    )


# The design of a study in sentences.


def design_words(study: Study, configurations: Sequence[Configuration]) -> str:
    """Describe how the trials are ordered, what later blocks hold, and why."""
    if len(configurations) < 2:
        return "One configuration, repeated; nothing is compared."
    return " ".join(
        (
            *_screening(study, configurations),
            *_ablation(study),
            _order(study),
            *_boots(study),
            *(() if study.across_boots else (*_allocation(study, len(configurations)), _WITHIN)),
        )
    )


_WITHIN = "Configurations are compared within blocks, so drift between blocks does not count."


def _boots(study: Study) -> Sequence[str]:
    if not study.across_boots:
        return ()
    each = study.blocks_per_boot
    blocks = count_of(each, "block")
    warm_up = ", after a warm-up," if study.design.warm_up else ""
    return (
        f"This machine reboots for every configuration that needs it, in random order, and measures {blocks} in each "
        f"boot{warm_up} before the next round. Boots are the units of comparison: their means are compared within "
        "rounds, so what differs from boot to boot is in the interval.",
    )


def _screening(study: Study, configurations: Sequence[Configuration]) -> Sequence[str]:
    if study.design.combine != "screening":
        return ()
    varied = [factor for factor in study.factors if len(factor.levels) > 1]
    three = len(varied[0].levels) == 3
    kind = "a definitive screening design" if three else "a Plackett-Burman design with its fold-over"
    return (
        f"Screening of {len(varied)} factors in {len(configurations)} configurations: {kind}. Main effects are not "
        f"mixed up with each other or with interactions of two factors; they are with interactions of three. "
        f"Interactions themselves are not estimated: several of them always show as one.",
    )


def _ablation(study: Study) -> Sequence[str]:
    if study.design.combine != "ablation":
        return ()
    lines = len(profile_lines(study))
    if is_exact(lines):
        of = count_of(lines, "line")
        return (f"Ablation of {of}: every combination of them in each block; shares are Shapley values.",)
    return (
        f"Ablation of {lines} lines: each block has nothing, the whole, each line alone and left out, and the way from "
        f"nothing to the whole in one of {ORDERS} random orders and in its reverse; shares are Shapley values, exactly "
        f"where no three lines interact, otherwise as the mean over these orders.",
    )


def _order(study: Study) -> str:
    of = "of its configurations" if study.allocation in ("refine", "best") else "of every configuration"
    if study.design.order == "latin":
        return (
            f"Blocks in Latin squares: each block has one trial {of}, and over as many blocks as it "
            "has trials each configuration stands once at each place and follows every other one equally often; which "
            "stands where is drawn anew for each square."
        )
    return f"Randomised blocks: each block has one trial {of}, in an order drawn anew."


def _allocation(study: Study, count: int) -> Sequence[str]:
    if study.allocation == "all" or count < 3:
        return ()
    if study.allocation == "refine":
        return (
            f"The first {study.budget.min_blocks} blocks hold a coarse grid of levels; from then on a block holds the "
            f"baseline and the points at which the surface is known worst, new ones where it bends and again those "
            f"where the noise is large.",
        )
    if study.allocation == "best":
        return (
            f"After {study.budget.min_blocks} blocks, a block holds the baseline and the configurations that may be "
            f"the best; it ends when at most a third of all may be.",
        )
    return (
        f"After {study.budget.min_blocks} blocks, a block holds the baseline and what is still undecided; a "
        f"configuration that is decided keeps the blocks it has.",
    )
