"""The environment of a run as a tree of texts: the inventory as ``ajuste inventory`` shows it, folded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from ajuste.inventory.document import Inventory
from ajuste.model.kernel_options import KERNEL_OPTIONS
from ajuste.model.proof import PROOFS
from ajuste.report.inventory_page import inventory_page
from ajuste.report.visible import visible_line

_DEEPEST: Final = 6
"""Levels of nesting that are shown as such."""


@dataclass(frozen=True)
class Branch:
    """A part of the environment: a text, or further parts, which are shown only when asked for if it is ``folded``."""

    name: str
    text: str = ""
    parts: tuple[Branch, ...] = ()
    folded: bool = False


def environment_of(environment: Mapping[str, Any]) -> tuple[Branch, ...]:
    """All branches, of which the inventory, here or of each of several machines, is a page of its own, folded."""
    own = {PROOFS, KERNEL_OPTIONS}  # They have tables.
    return _branches({name: value for name, value in environment.items() if name not in own})


def _inventory(document: Any, depth: int) -> tuple[Branch, ...]:
    """As ``ajuste inventory`` shows it; one that is not understood, as any other mapping."""
    try:
        areas = inventory_page(Inventory.model_validate(document))
    except ValidationError:
        return _branches(document, depth) if isinstance(document, Mapping) else (Branch("?", text=str(document)),)
    return tuple(
        Branch(area.title, parts=tuple(Branch(line.label, text=visible_line(line.text)) for line in area.lines))
        for area in areas
    )


def _branches(mapping: Mapping[str, Any], depth: int = 0) -> tuple[Branch, ...]:
    return tuple(
        Branch("inventory", parts=_inventory(value, depth + 1), folded=True)
        if name == "inventory" and depth < _DEEPEST
        else Branch(str(name), parts=_branches(value, depth + 1))
        if isinstance(value, Mapping) and depth < _DEEPEST
        else Branch(str(name), text=_as_text(value))
        for name, value in mapping.items()
    )


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_as_text(item) for item in value)
    return "–" if value is None else str(value)
