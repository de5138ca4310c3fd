"""Showing results: the HTML report on disk, and on stdout the tables or the document."""

from __future__ import annotations

import sys
from pathlib import Path

import typer
from rich.console import Console

from ajuste.model.results import Results
from ajuste.report.html import write_report
from ajuste.report.terminal import print_results


def show_results(results: Results, path: Path, *, as_json: bool) -> None:
    """Write the report to ``path`` and print the results."""
    write_report(results, path)
    if as_json:
        typer.echo(results.model_dump_json(indent=2))
    else:
        print_results(results, Console(file=sys.stdout), report=path)
