"""The map of the workspace: sizes and imports of its packages."""

from __future__ import annotations

from writing.map import CORE, MOST_LINES, mapped_packages, workspace_map


def test_the_core_and_its_statistics_fit_in_mind() -> None:
    lines = {package.name: package.lines for package in mapped_packages()}
    assert {name: lines[name] for name in MOST_LINES if lines[name] > MOST_LINES[name]} == {}


def test_the_core_imports_its_statistics_alone() -> None:
    (core,) = (package for package in mapped_packages() if package.name == CORE)
    assert core.packages == ("ajuste_stats",)


def test_each_package_has_a_line() -> None:
    assert [line.split()[0] for line in workspace_map().splitlines()[1:]] == [p.name for p in mapped_packages()]
