"""Catalogue entries made up for a test."""

from __future__ import annotations

from typing import Any

from ajuste.model.tunable import Tunable


def entry(name: str, **fields: Any) -> Tunable:
    defaults = dict(title=name, subsystem="s", what="It is.", type="boolean", default="0")
    return Tunable.model_validate({"name": name, **defaults, **fields})


def place(kind: str, path: str = "", **fields: Any) -> list[dict[str, str]]:
    return [{"kind": kind, "path": path, **fields}]
