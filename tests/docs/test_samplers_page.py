"""docs/samplers.md says of every figure what the catalogue says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ajuste.catalogue.loader import figure_sources
from ajuste.model.metric import FigureSource

PAGE = Path(__file__).parents[2] / "docs" / "samplers.md"


def section(source: FigureSource) -> str:
    """The section of one source as it must be on the page."""
    lines = [f"### {source.name}: {', '.join(f'`{name}`' for name in source.files)}", "", source.what, ""]
    lines += ["| Figure | Kind | Unit | Meaning |", "|---|---|---|---|"]
    lines += [f"| `{f.name}` | {f.kind} | {f.unit} | {f.what} |" for f in source.figures]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("source", figure_sources().values(), ids=lambda source: source.name)
def test_a_source_is_described_as_in_the_catalogue(source: FigureSource) -> None:
    assert section(source) in PAGE.read_text()


def test_there_are_no_other_sources_on_the_page() -> None:
    assert re.findall(r"^### (\w+):", PAGE.read_text(), re.MULTILINE) == list(figure_sources())
