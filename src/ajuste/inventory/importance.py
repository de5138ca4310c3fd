"""How much a difference can matter, and why: the rules of ``importance.toml``."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Importance = Literal["high", "medium", "low"]

ORDER: Final[tuple[Importance, ...]] = ("high", "medium", "low")


class Rule(BaseModel):
    """``fields`` are patterns of dotted paths. Numbers that differ by less than ``tolerance`` (relative) are alike."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    fields: tuple[str, ...] = Field(min_length=1)
    importance: Importance
    why: str
    tolerance: float = Field(default=0.0, ge=0, lt=1)


_UNHEARD: Final = Rule(fields=("*",), importance="low", why="Not known to this version of Ajuste.")


@cache
def rules() -> tuple[Rule, ...]:
    """In the order of the file: the first that fits counts."""
    table = tomllib.loads(files(__package__).joinpath("importance.toml").read_text())
    return tuple(Rule.model_validate(rule) for rule in table["rule"])


@cache
def rule_of(path: str) -> Rule:
    """The rule for the dotted ``path`` of a field."""
    return next((rule for rule in rules() if any(fnmatchcase(path, field) for field in rule.fields)), _UNHEARD)
