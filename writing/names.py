"""Names and docstrings of the program: names are words of the field, docstrings begin with a verb or a noun."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from writing.prose import ROOT, VOCABULARY

_RULES: Final = tomllib.loads(VOCABULARY.read_text(encoding="utf-8"))["code"]
_NAMES: Final = frozenset(_RULES["names"])
_OPENING: Final = re.compile(rf"\s*(?:{'|'.join(_RULES['openings'])})\b")


@dataclass(frozen=True)
class Finding:
    """A name or a docstring that says little, and where it is."""

    path: str
    line: int
    text: str


def listed_names(path: Path) -> Iterator[Finding]:
    """Yield where a file gives a variable, parameter, function or class a name of the list."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.MatchAs(name=str(name)):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case _:
                continue
        place = f"{path.relative_to(ROOT)}:{name}"
        if name.strip("_") in _NAMES and place not in _RULES["stored"]:
            yield Finding(str(path.relative_to(ROOT)), node.lineno, name)


def odd_openings(path: Path) -> Iterator[Finding]:
    """Yield the docstrings of a file that begin with a word of the list."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for line in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            match line:
                case ast.Expr(value=ast.Constant(value=str(text))) if _OPENING.match(text):
                    yield Finding(str(path.relative_to(ROOT)), line.lineno, text.strip().partition("\n")[0])


def program_files() -> list[Path]:
    """Return the modules of the program, sorted by path."""
    return sorted((ROOT / "src" / "ajuste").rglob("*.py"))
