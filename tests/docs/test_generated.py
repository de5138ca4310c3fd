"""Generated pages say what the program says now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from writing.generated import ROOT, SAMPLERS, TABLES, pages, samplers, source_section

from ajuste.catalogue.loader import catalogue, figure_sources
from ajuste.study.read import json_schema

PAGES = pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path], f"run `python -m writing`: {path.relative_to(ROOT)} is old"


def test_every_table_of_a_study_has_a_heading() -> None:
    assert set(TABLES) == set(json_schema(catalogue())["$defs"])


def test_the_page_of_samplers_has_every_source_once() -> None:
    text = SAMPLERS.read_text(encoding="utf-8")
    assert re.findall(r"^### (\w+):", text, re.MULTILINE) == list(figure_sources())
    assert all(source_section(source) in text for source in figure_sources().values())


def test_an_old_table_of_samplers_is_replaced() -> None:
    first, *_ = figure_sources().values()
    assert samplers("# Samplers\n\n### old: `/proc/old`\n").startswith(f"# Samplers\n\n{source_section(first)}")
