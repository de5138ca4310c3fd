"""The environment of a run as a tree of facts, and what its clock means for the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from ajuste.machine.inventory.inventory import Inventory
from ajuste.model.kernel import KERNEL_OPTIONS, PROOFS
from ajuste.model.results import Results
from ajuste.report.document import Fact
from ajuste.report.inventory_page import inventory_page

_DEEPEST: Final = 6
"""Levels of nesting that are shown as such."""


def environment_facts(environment: Mapping[str, Any]) -> tuple[Fact, ...]:
    """All branches, of which the inventory, here or of each of several machines, is a page of its own, folded."""
    own = {PROOFS, KERNEL_OPTIONS}  # They have tables.
    return _facts({name: value for name, value in environment.items() if name not in own})


def _inventory(document: Any, depth: int) -> tuple[Fact, ...]:
    """As ``ajuste inventory`` shows it; one that is not understood, as any other mapping."""
    try:
        areas = inventory_page(Inventory.model_validate(document))
    except ValidationError:
        return _facts(document, depth) if isinstance(document, Mapping) else (Fact("?", str(document)),)
    return tuple(Fact(area.title, parts=area.facts) for area in areas)


def _facts(mapping: Mapping[str, Any], depth: int = 0) -> tuple[Fact, ...]:
    return tuple(
        Fact("inventory", parts=_inventory(value, depth + 1), folded=True)
        if name == "inventory" and depth < _DEEPEST
        else Fact(str(name), parts=_facts(value, depth + 1))
        if isinstance(value, Mapping) and depth < _DEEPEST
        else Fact(str(name), _as_text(value))
        for name, value in mapping.items()
    )


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_as_text(item) for item in value)
    return "–" if value is None else str(value)


# What the clock of a run means for its figures, in plain words.


VIRTUAL: Final = (
    "Measured under the virtual clock: an emulated CPU whose time is the count of its instructions. The figures repeat "
    "to the last digit on any machine. They say what the kernel does, not how fast any hardware is."
)
EMULATED: Final = (
    "Measured on an emulated CPU (QEMU without hardware virtualisation) with the ordinary clock. Compare the "
    "configurations with each other; the figures are not the speed of any hardware."
)


def warnings_of(results: Results) -> tuple[str, ...]:
    """What a reader must know: of the clock, unless one of the notes says it already, then the notes."""
    if results.clock is None:
        return results.notes
    word, warning = ("virtual clock", VIRTUAL) if results.clock == "virtual" else ("emulated", EMULATED)
    needed = results.clock == "virtual" or _is_emulated(results.environment)
    said = any(word in note.lower() and "emulated" in note.lower() for note in results.notes)
    return (warning, *results.notes) if needed and not said else results.notes


def clock_name(results: Results) -> str:
    """The clock that trials ran under."""
    return "virtual clock" if results.clock == "virtual" else "wall clock"


def _is_emulated(environment: Mapping[str, Any]) -> bool:
    return any(
        "accelerator" in name.lower() and value.strip().lower().startswith("tcg") for name, value in _texts(environment)
    )


def _texts(mapping: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _texts(value)
        else:
            yield str(name), str(value)
