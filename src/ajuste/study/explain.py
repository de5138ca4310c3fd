"""What the reader of a report must know of the factors: what they are, where, and which stand in for another."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.catalogue.loader import Catalogue
from ajuste.model.configuration import KERNEL_FACTOR, Factor
from ajuste.model.results import Explained
from ajuste.study.check import parameter_of
from ajuste.study.knob import Knob
from ajuste.study.schema import Study


def explain(
    study: Study, knobs: Sequence[Sequence[Knob]], factors: Sequence[Factor], catalogue: Catalogue
) -> tuple[Explained, ...]:
    """Every tunable that is really varied, then kernels and parameters, in the factors' order."""
    found: dict[str, Explained] = {}
    for table, own in zip(study.factors, knobs, strict=True):
        for knob in own:
            found.setdefault(knob.tunable.name, _explain_knob(knob, own))
        parameter = parameter_of(table)
        if parameter:
            kind = catalogue.workloads[study.workload.kind or ""]
            text = kind.parameters[parameter]
            found[table.name] = Explained(
                name=table.name,
                title=f"{parameter} of {kind.title}",
                what=text.what,
                unit="",
                default=text.default,
                where="the workload's command line",
            )
        elif table.name == KERNEL_FACTOR:
            found[table.name] = Explained(
                name=table.name,
                title="the kernel",
                what="The Linux kernel that is booted; everything else of the machine stays the same.",
                unit="",
            )
    return tuple(found.values())


def successor_notes(knobs: Sequence[Sequence[tuple[str, Knob]]]) -> tuple[str, ...]:
    """A sentence for every tunable that was varied in place of another."""
    notes = [
        f"{spec} has no {knob.instead_of.name}; its successor {knob.tunable.name}, a related but different tunable, "
        f"was varied instead"
        for own in knobs
        for spec, knob in own
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
