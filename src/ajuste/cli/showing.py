"""Showing results: the HTML report on disk, and on stdout the tables or the document."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from ajuste.cli.log import without_log
from ajuste.machine.cache import REPORTS, make_room
from ajuste.machine.home import home
from ajuste.machine.installation import ajuste_version
from ajuste.model.base import BaseModel
from ajuste.model.results import Results
from ajuste.report.console import Console
from ajuste.report.format import ago
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report


def show_results(
    results: Results,
    path: Path,
    *,
    as_json: bool,
    verbose: bool = False,
    metrics: Sequence[str] = (),
    browser: bool = False,
    again: str = "",
) -> None:
    """Print the results, the answer first, the details if ``verbose``; then write the report to ``path``.

    ``metrics`` are those whose figures are printed: those that decide if none is named. With ``browser`` the report is
    opened. ``again`` is when results were measured that are shown once more.
    """
    report = results_report(results)
    if as_json:
        typer.echo(results.model_dump_json(indent=2))
    else:
        printed = results_report(results, metrics) if metrics else report
        print_report(printed, Console(file=sys.stdout), verbose=verbose, path=path)
        if again:
            print(f"Measured {ago(again)}; --fresh measures again.")
    sys.stdout.flush()
    from ajuste.report.html import write_report  # not before the answer is shown

    write_report(report, path, contents_of(results))
    if path.parent == (place := home()).reports:
        make_room(REPORTS, place)
    if browser:
        from ajuste.cli.browser import open_report  # few ask for it

        open_report(path)


def contents_of(document: BaseModel) -> str:
    """Names what a page is made of: ``document``, and this Ajuste."""
    return hashlib.sha256(f"{ajuste_version()} {document.model_dump_json()}".encode()).hexdigest()


# The command that a person gave.


_SHOWING: Final = frozenset({"--quiet", "--json", "--fresh", "--verbose", "--open"})
_WAIT: Final = "--wait"


def command_line() -> str:
    """As one line for a shell, without the words that only say how its results are shown, how long it may wait, or that
    old ones are not.
    """
    words = without_log(sys.argv[1:])
    end = words.index("--") if "--" in words else len(words)
    local = [
        word
        for before, word in zip(["", *words], words[:end], strict=False)
        if word not in _SHOWING and word.partition("=")[0] != _WAIT and before != _WAIT
    ]
    return shlex.join(["ajuste", *local, *words[end:]])
