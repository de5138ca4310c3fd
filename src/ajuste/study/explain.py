"""What the reader of a report must know of the factors: what they are, where, and which stand in for another."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from ajuste.catalogue.loader import Catalogue
from ajuste.model.configuration import COMMAND_FACTOR, Factor
from ajuste.model.results import Explained
from ajuste.study.knob import Knob
from ajuste.study.schema import FactorTable, Study
from ajuste.study.settings import KERNEL_ARGUMENTS, names_set, parameter_of


def explain(
    study: Study, knobs: Mapping[str, Mapping[str, Knob]], factors: Sequence[Factor], catalogue: Catalogue
) -> tuple[Explained, ...]:
    """What every factor sets, in the factors' order; one with settings first by itself. ``knobs`` by name and kernel
    spec."""
    found: dict[str, Explained] = {}
    for table, factor in zip(study.factors, factors, strict=True):
        if table.settings:
            found[factor.name] = _several(table)
        for name in names_set(table):
            own = tuple(knobs.get(name, {}).values())
            for knob in own:
                found.setdefault(knob.tunable.name, _explain_knob(knob, own))
            if not own:
                found[name] = _explain(name, study, catalogue)
    return tuple(found.values())


def _several(table: FactorTable) -> Explained:
    levels = (f"{level}: {_settings_text(settings)}" for level, settings in table.settings.items())
    return Explained(
        name=table.name, title="several settings at once", what=f"What each level sets. {'; '.join(levels)}.", unit=""
    )


def _settings_text(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {level}" for name, level in settings.items()) or "nothing"


def _explain(name: str, study: Study, catalogue: Catalogue) -> Explained:
    """What is no tunable."""
    if parameter := parameter_of(name):
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
    if name == COMMAND_FACTOR:
        commands = "; ".join(f"{v.name}: {shlex.join(v.command)}" for v in study.workload.variants)
        return Explained(name=name, title="the command", what=f"What is run. {commands}", unit="")
    if name == KERNEL_ARGUMENTS:
        return Explained(
            name=name,
            title="the kernel's command line",
            what="Words that are added to the guest's; they count from its boot.",
            unit="",
        )
    return Explained(
        name=name,
        title="the kernel",
        what="The Linux kernel that is booted; everything else of the machine stays the same.",
        unit="",
    )


def successor_notes(knobs: Mapping[str, Mapping[str, Knob]]) -> tuple[str, ...]:
    """A sentence for every tunable that was varied in place of another."""
    notes = [
        f"{spec} has no {knob.instead_of.name}; its successor {knob.tunable.name}, a related but different tunable, "
        f"was varied instead"
        for own in knobs.values()
        for spec, knob in own.items()
        if knob.instead_of is not None
    ]
    return tuple(dict.fromkeys(notes))


def _explain_knob(knob: Knob, siblings: Sequence[Knob]) -> Explained:
    tunable = knob.tunable
    places = dict.fromkeys(other.where for other in siblings if other.tunable.name == tunable.name)
    note = ""
    if knob.instead_of is not None:
        asked = knob.instead_of.name
        note = f"The successor of {asked}, which this kernel does not have: a related but different tunable."
    return Explained(
        name=tunable.name,
        title=tunable.title,
        what=tunable.what,
        unit=tunable.unit,
        default=tunable.default,
        where=" or ".join(places),
        note=note,
    )
