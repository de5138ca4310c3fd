"""Generated pages say what the program says now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from writing import command_line
from writing.generated import PROGRAM, REFERENCE, ROOT, TABLES, pages
from writing.results import tables

from ajuste.catalogue.loader import catalogue, figure_sources
from ajuste.cli.main import COMMANDS
from ajuste.study.read import json_schema

PAGES = pages()
WRITTEN = PAGES | command_line.pages()


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_page_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == WRITTEN[path], (
        f"run `python -m writing`: {path.relative_to(ROOT)} is old"
    )


def test_every_table_of_a_study_has_a_heading() -> None:
    assert set(TABLES) == set(json_schema(catalogue())["$defs"])


@pytest.mark.parametrize(
    ("page", "names"),
    [("command-line.md", COMMANDS), ("workloads.md", catalogue().workloads), ("sampler-figures.md", figure_sources())],
)
def test_a_page_has_a_section_for_each(page: str, names: tuple[str, ...]) -> None:
    heads = re.findall(r"^## (?:ajuste )?([\w-]+)(?::.*)?$", PAGES[REFERENCE / page], re.MULTILINE)
    assert heads == list(names)


def test_the_package_of_a_workload_is_that_of_its_program_and_not_of_the_shell_that_starts_it() -> None:
    lines = re.findall(r"^Packages?: .*$", PAGES[REFERENCE / "workloads.md"], re.MULTILINE)
    named = set(re.findall(r"`([\w-]+)`", "".join(lines)))
    assert named >= {"dbench", "postgresql", "fio"}
    assert named.isdisjoint({"dash", "bash", "coreutils"})


def test_every_table_of_the_results_says_what_it_is() -> None:
    assert [table.__name__ for table in tables() if not table.__dict__.get("__doc__")] == []


@pytest.mark.parametrize("page", ["formats.md", "metrics.md", "file-fields.md", "packages.md"])
def test_every_row_of_a_list_says_what_it_is(page: str) -> None:
    assert [
        line for line in PAGES[REFERENCE / page].splitlines() if re.search(r"\|\s*\|$|: *\|$|\| None \|$", line)
    ] == []


def test_the_pages_are_those_that_the_check_of_words_leaves_out() -> None:
    assert {path.name for path in PAGES} == set(PROGRAM)
