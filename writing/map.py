"""The map of the workspace: each package with its lines, and what it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from writing.generated import ROOT

CORE: Final = "ajuste"
MOST_LINES: Final = {CORE: 45_000, "ajuste_stats": 10_000}
"""A package that one person can hold in mind is no larger."""


@dataclass(frozen=True)
class MappedPackage:
    """A Python package of the workspace and its modules."""

    name: str
    files: tuple[Path, ...]

    @cached_property
    def lines(self) -> int:
        return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in self.files)

    @cached_property
    def imports(self) -> frozenset[str]:
        """Return the modules of the workspace that it imports from other packages."""
        modules = {name for file in self.files for name in _imported(_tree(file)) if name.startswith(CORE)}
        return frozenset(name for name in modules if name.partition(".")[0] != self.name)

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the packages that it imports, without the core."""
        return tuple(sorted({name.partition(".")[0] for name in self.imports} - {CORE}))

    @property
    def late_constants(self) -> int:
        """Return how many constants come after the first function or class of their module."""
        return sum(_late_constants(_tree(file)) for file in self.files)


def mapped_packages() -> tuple[MappedPackage, ...]:
    """Return the core and the packages around it."""
    roots = (ROOT / "src" / CORE, *sorted(ROOT.glob("packages/*/src/ajuste_*")))
    return tuple(MappedPackage(root.name, tuple(sorted(root.rglob("*.py")))) for root in roots)


def workspace_map() -> str:
    """Return the map as a table."""
    rows: list[tuple[str, ...]] = [("package", "modules", "lines", "of the core", "late constants", "imports")]
    for package in mapped_packages():
        core = sum(name.partition(".")[0] == CORE for name in package.imports)
        counts = (len(package.files), package.lines, core, package.late_constants)
        rows.append((package.name, *(f"{count:,}" for count in counts), ", ".join(package.packages)))
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    return "\n".join(
        "  ".join(
            (row[0].ljust(widths[0]), *(row[place].rjust(widths[place]) for place in range(1, 5)), row[5])
        ).rstrip()
        for row in rows
    )


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _late_constants(tree: ast.Module) -> int:
    # Those that are made of functions or classes of the module have to come after these.
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    after: set[str] = set()
    late = 0
    for node in tree.body:
        if isinstance(node, definitions):
            after.add(node.name)
        elif after and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if after.isdisjoint(name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)):
                late += 1
            else:
                after |= {target.id for target in targets if isinstance(target, ast.Name)}
    return late
