"""Showing results: the HTML report on disk, and on stdout the tables or the document."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from ajuste.cache import REPORTS, make_room
from ajuste.home import home
from ajuste.model.results import Results
from ajuste.report.comparison import print_comparison
from ajuste.report.html import write_report
from ajuste.report.terminal import print_results
from ajuste.report.visible import Console


def show_results(results: Results, path: Path, *, as_json: bool, answer_first: bool = False) -> None:
    """Write the report to ``path`` and print the results, with the ``answer_first`` where it is what was asked for."""
    write_report(results, path)
    if path.parent == (place := home()).reports:
        make_room(REPORTS, place)
    if as_json:
        typer.echo(results.model_dump_json(indent=2))
    elif answer_first:
        print_comparison(results, Console(file=sys.stdout), report=path)
    else:
        print_results(results, Console(file=sys.stdout), report=path)
