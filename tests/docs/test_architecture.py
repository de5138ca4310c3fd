"""The page on the code's layout has journeys that the imports bear out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ajuste

PACKAGE = Path(ajuste.__file__).parent
ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/explanation/architecture.md").read_text()
JOURNEYS = [part for part in TEXT.split("\n\n") if part.startswith("**") and "→" in part]
MOST_FILES = 10


def file_of(path: str) -> Path:
    """A file of the core, or of the package that its path begins with."""
    package = path.partition("/")[0].removeprefix("ajuste_")
    return ROOT / "packages" / package / "src" / path if path.startswith("ajuste_") else PACKAGE / path


def imported(path: str) -> set[str]:
    """The files that a module imports, wherever in it."""
    modules = set()
    for node in ast.walk(ast.parse(file_of(path).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ajuste"):
            base = str(node.module).removeprefix("ajuste.").replace(".", "/")
            modules |= {f"{base}.py", *(f"{base}/{alias.name}.py" for alias in node.names)}
    return modules


def test_there_are_three_journeys() -> None:
    assert len(JOURNEYS) == 3


@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_journey_is_short_and_each_step_is_a_call(journey: str) -> None:
    files = re.findall(r"`([a-z_/]+\.py)`", journey)
    assert len(set(files)) <= MOST_FILES
    for first, second in re.findall(r"(?=`([a-z_/]+\.py)`\s→\s`([a-z_/]+\.py)`)", journey):
        assert second in imported(first), f"{first} does not import {second}"
