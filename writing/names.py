"""Names and docstrings of the program: names are words of the field, docstrings begin with a verb or a noun.

``python -m writing.names [DIRECTORY]`` counts them, and how much code and comments there are.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from writing.prose import ROOT, VOCABULARY, sources

_RULES: Final = tomllib.loads(VOCABULARY.read_text(encoding="utf-8"))["code"]
_NAMES: Final = frozenset(_RULES["names"])
_DIRECTIVE: Final = re.compile(r"#\s*(?:noqa|type:|mypy:|fmt:)")
_OPENING: Final = re.compile(rf"\s*(?:{'|'.join(_RULES['openings'])})\b")


@dataclass(frozen=True)
class Finding:
    """A name or a docstring that says little, and where it is."""

    path: str
    line: int
    text: str


def listed_names(path: Path, root: Path = ROOT) -> Iterator[Finding]:
    """Yield where a file gives a variable, parameter, function or class a name of the list, stored fields excepted."""
    for finding in _named(path, root):
        if f"{finding.path}:{finding.text}" not in _RULES["stored"]:
            yield finding


def _named(path: Path, root: Path) -> Iterator[Finding]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.MatchAs(name=str(name)):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case _:
                continue
        if name.strip("_") in _NAMES:
            yield Finding(str(path.relative_to(root)), node.lineno, name)


def odd_openings(path: Path, root: Path = ROOT) -> Iterator[Finding]:
    """Yield the docstrings of a file that begin with a word of the list."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for line in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            match line:
                case ast.Expr(value=ast.Constant(value=str(text))) if _OPENING.match(text):
                    yield Finding(str(path.relative_to(root)), line.lineno, text.strip().partition("\n")[0])


def program_files(root: Path = ROOT) -> list[Path]:
    """Return the modules of the program, sorted by path."""
    return sorted(path for source in sources(root) for path in source.rglob("*.py"))


def checked_files(root: Path = ROOT) -> list[Path]:
    """Return the files that follow the rules of names and docstrings: program, tests, benchmarks and `writing`."""
    parts = (*(root / part for part in ("benchmarks", "tests", "writing")), *root.glob("packages/*/tests"))
    return [*program_files(root), *sorted(path for part in parts for path in part.rglob("*.py"))]


def figures(root: Path) -> dict[str, float]:
    """Return the sizes of the program below ``root``; comments are those that say something to a person, in percent of
    the lines with text.
    """
    if not (files := program_files(root)):
        raise SystemExit(f"{root}: expected a tree with src/ajuste")
    texts = [path.read_text(encoding="utf-8") for path in files]
    with_text = sum(bool(line.strip()) for text in texts for line in text.splitlines())
    return {
        "modules": len(files),
        "lines": sum(len(text.splitlines()) for text in texts),
        "comments (%)": round(100 * sum(map(_comments, texts)) / with_text, 1),
        "listed names": sum(1 for path in files for _ in _named(path, root)),
        "odd docstring openings": sum(1 for path in files for _ in odd_openings(path, root)),
    }


def _comments(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string) for token in tokens)


if __name__ == "__main__":
    for name, figure in figures(Path(*sys.argv[1:2] or (ROOT,)).absolute()).items():
        print(f"{name:24}{figure:>10,}")
