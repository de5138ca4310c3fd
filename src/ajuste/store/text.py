"""Texts of other programs, kept to the byte whatever the database takes."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Dialect, String
from sqlalchemy.types import TypeDecorator

_NUL: Final = "\0"
_MARK: Final = "\ue000"
"""Begins an escape; of the private use area, so that hardly any text has it."""


def escaped(text: str) -> str:
    """``text`` without NUL, which PostgreSQL takes in no text (manual, 8.3 Character Types)."""
    if _NUL not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARK + "1").replace(_NUL, _MARK + "0")


def unescaped(text: str) -> str:
    """What ``escaped`` was given."""
    return text.replace(_MARK + "0", _NUL).replace(_MARK + "1", _MARK) if _MARK in text else text


class ExactText(TypeDecorator[str]):
    """Any text, which comes back as it was."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value if value is None or dialect.name == "sqlite" else escaped(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return value if value is None or dialect.name == "sqlite" else unescaped(value)
