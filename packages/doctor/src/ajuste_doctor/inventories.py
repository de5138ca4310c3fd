"""Differences between two inventories, and how much each can matter by the rules of ``importance.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from pydantic import Field

from ajuste.machine.inventory.inventory import Inventory
from ajuste.machine.inventory.source import NEEDS_ROOT
from ajuste.model.base import BaseModel, ClosedModel

NOT_ASKED: Final = "not asked"
# Beginnings of reasons that say nothing about the machine: these fields cannot be compared.
_NOT_KNOWN: Final = (NEEDS_ROOT, NOT_ASKED, "the kernel was not asked", "neither /proc/config.gz", "not understood")

Importance = Literal["high", "medium", "low"]

ORDER: Final[tuple[Importance, ...]] = ("high", "medium", "low")


class ImportanceRule(ClosedModel):
    """``fields`` are patterns of dotted paths. Numbers that differ by less than ``tolerance`` (relative) are alike."""

    fields: tuple[str, ...] = Field(min_length=1)
    importance: Importance
    why: str
    tolerance: float = Field(default=0.0, ge=0, lt=1)


_UNHEARD: Final = ImportanceRule(fields=("*",), importance="low", why="Not known to this version of Ajuste.")


@cache
def rules() -> tuple[ImportanceRule, ...]:
    """Return the rules in the order of the file: the first that fits counts."""
    table = tomllib.loads(files(__package__).joinpath("importance.toml").read_text())
    return tuple(ImportanceRule.model_validate(rule) for rule in table["rule"])


@cache
def find_rule(path: str) -> ImportanceRule:
    """Return the rule for the dotted ``path`` of a field."""
    return next((rule for rule in rules() if any(fnmatchcase(path, field) for field in rule.fields)), _UNHEARD)


class InventoryDifference(BaseModel):
    """``field`` is a dotted path within ``area``; ``a`` and ``b`` are ``None`` where there is no such thing."""

    area: str
    field: str
    a: str | int | float | bool | None
    b: str | int | float | bool | None
    importance: Importance
    why: str

    @property
    def path(self) -> str:
        return f"{self.area}.{self.field}" if self.field else self.area


class NotCompared(BaseModel):
    """A field that one of them does not know, and why."""

    path: str
    reason: str


class InventoryComparison(BaseModel):
    """``differences`` by area, most important first: areas by the most important in them."""

    differences: tuple[InventoryDifference, ...]
    not_compared: tuple[NotCompared, ...]


class _Unknown(BaseModel):
    reason: str


def compare_inventories(a: Inventory, b: Inventory) -> InventoryComparison:
    """Return what differs between ``a`` and ``b``."""
    differences: list[InventoryDifference] = []
    not_compared: list[NotCompared] = []
    pairs = _pairs(
        "", a.model_dump(mode="json", exclude={"inventory"}), b.model_dump(mode="json", exclude={"inventory"})
    )
    for path, left, right in pairs:
        unknown = next((side for side in (left, right) if isinstance(side, _Unknown)), None)
        if unknown is not None:
            if left != right:
                not_compared.append(NotCompared(path=path, reason=unknown.reason))
        elif not _alike(left, right, find_rule(path).tolerance):
            area, _, field = path.partition(".")
            rule = find_rule(path)
            differences.append(
                InventoryDifference(area=area, field=field, a=left, b=right, importance=rule.importance, why=rule.why)
            )
    return InventoryComparison(differences=_ordered(differences), not_compared=tuple(not_compared))


def _ordered(differences: list[InventoryDifference]) -> tuple[InventoryDifference, ...]:
    best: dict[str, int] = {}
    for difference in differences:
        rank = ORDER.index(difference.importance)
        best[difference.area] = min(best.get(difference.area, rank), rank)
    places = {area: place for place, area in enumerate(dict.fromkeys(d.area for d in differences))}
    return tuple(sorted(differences, key=lambda d: (best[d.area], places[d.area], ORDER.index(d.importance))))


def _pairs(path: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    left, right = _known(a), _known(b)
    if path == "kernel.options" and bool(left) != bool(right):
        yield path, _Unknown(reason="only one of them could be read"), None
        return
    for name in dict.fromkeys((*left, *right)):
        inner = f"{path}.{name}" if path else name
        a_value, other = left.get(name), right.get(name)
        if isinstance(a_value, Mapping) and isinstance(other, Mapping):
            yield from _pairs(inner, a_value, other)
        elif isinstance(a_value, Mapping) or isinstance(other, Mapping):
            yield inner, _described(a_value), _described(other)
        elif isinstance(a_value, list) and isinstance(other, list):
            yield inner, _only(a_value, other), _only(other, a_value)
        else:
            yield inner, _flat(a_value), _flat(other)


def _known(mapping: Mapping[str, Any]) -> dict[str, Any]:
    # The fields of a section; one without a value is its reason, where that says something about the machine.
    unknown = mapping.get("unknown")
    reasons: Mapping[str, Any] = unknown if isinstance(unknown, Mapping) else {}
    known = {name: value for name, value in mapping.items() if name != "unknown" or not isinstance(value, Mapping)}
    for name, reason in reasons.items():
        if known.get(name) is None:
            is_fact = not str(reason).startswith(_NOT_KNOWN)
            known[name] = str(reason) if is_fact else _Unknown(reason=str(reason))
    return known


def _described(thing: Any) -> Any:
    if not isinstance(thing, Mapping):
        return _flat(thing)
    words = [str(thing[name]) for name in ("type", "kind", "model", "driver", "device", "cpus") if thing.get(name)]
    return ", ".join(words) or "there"


def _only(these: list[Any], those: list[Any]) -> str:
    if all(isinstance(word, str) for word in (*these, *those)):
        return " ".join(word for word in these if word not in set(those))
    return str(_flat(these))


def _flat(value: Any) -> Any:
    return " ".join(str(item) for item in value) if isinstance(value, list) else value


def _alike(a: Any, b: Any, tolerance: float) -> bool:
    if a == b:
        return True
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b))
    return numbers and tolerance > 0 and abs(a - b) <= tolerance * max(abs(a), abs(b))
