"""``ajuste analyse``: verdicts for results that were measured elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from ajuste.cli.options import Json, Open, Verbose, example
from ajuste.cli.showing import Showing, command_line
from ajuste.machine.home import ajuste_version, home
from ajuste.model.error import RequestError
from ajuste.outputs.format import utf8
from ajuste.study.command_line.request import share
from ajuste_analyse.files import NAMES, FileRequest, matching_files, read_files, split_names
from ajuste_analyse.verdicts import TableQuestion, analyse_table

Names = list[str] | None
_LEAST_CONFIDENCE: Final = 0.5
_MOST_CONFIDENCE: Final = 0.9999


@example(
    "ajuste analyse before.json after.json",
    "ajuste analyse sleep.csv --higher change --three-sigma",
)
def analyse(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="CSV, JSON of Ajuste, or output of hyperfine, fio, perf stat, pgbench, wrk, go test, JMH, …; a "
            "directory or pattern of such files is a group.",
        ),
    ],
    name: Annotated[
        Names, typer.Option(help="Configuration name for each file, in order (repeatable, or separated by commas).")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Baseline configuration (default: the first).")] = None,
    lower: Annotated[
        Names, typer.Option(metavar="METRIC", help="Lower is better (repeatable, or separated by commas).")
    ] = None,
    higher: Annotated[
        Names, typer.Option(metavar="METRIC", help="Higher is better (repeatable, or separated by commas).")
    ] = None,
    metric: Annotated[
        Names,
        typer.Option(
            metavar="METRIC", help="Metrics that decide (default: the main ones; repeatable, or separated by commas)."
        ),
    ] = None,
    difference: Annotated[
        Names,
        typer.Option(metavar="METRIC", help="Compare by differences, not ratios (repeatable, or separated by commas)."),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help=f"File format, if not detected: {', '.join(NAMES)}."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(metavar="N", help="Runs behind each mean: the N of perf stat -r N, or of lkp.")
    ] = None,
    min_effect: Annotated[str, typer.Option(metavar="SHARE", help="The smallest effect that matters.")] = "2%",
    confidence: Annotated[str, typer.Option(metavar="SHARE", help="Confidence of all verdicts together.")] = "95%",
    three_sigma: Annotated[
        bool, typer.Option("--three-sigma", help="Also show the verdict of the 3-sigma rule.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", "-o", metavar="FILE", help="Write the HTML report to this file.")
    ] = None,
    open_: Open = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Give verdicts on results measured elsewhere.

    Each file, or group of files, is one configuration; the first is the baseline.
    """
    file_request = FileRequest(
        format=format_, lower=lower or (), higher=higher or (), differences=difference or (), runs=runs
    )
    wanted = TableQuestion(
        baseline=baseline,
        confidence=_confidence(confidence),
        smallest_effect=share("--min-effect", min_effect),
        three_sigma=three_sigma,
    )
    _check_target(html, files)
    table = read_files(files, _names(name, files), file_request)
    wanted = replace(wanted, metrics=split_names(metric or (), table))
    command = command_line(context)
    names = tuple(utf8(str(file)) for file in files)
    results = analyse_table(table, wanted, files=names, reproduce=(utf8(command),), ajuste=ajuste_version())
    path = html or home().reports / f"analyse-{results.digest[:12]}.html"
    Showing(path, browser=open_, verbose=verbose, as_json=as_json).show(results)


def _names(words: Names, files: Sequence[Path]) -> tuple[str, ...]:
    # A single word with commas is split only where there are several files: a name may contain a comma.
    names = tuple(words or ())
    if len(names) == 1 and len(files) > 1:
        return tuple(part.strip() for part in names[0].split(","))
    return names


def _confidence(text: str) -> float:
    value = share("--confidence", text)
    if not _LEAST_CONFIDENCE <= value <= _MOST_CONFIDENCE or math.isnan(value):
        raise RequestError(f"--confidence {text}: expected between 50% and 99.99%")
    return value


def _check_target(html: Path | None, files: Sequence[Path]) -> None:
    if html is None:
        return
    if html.is_dir() or not html.absolute().parent.is_dir():
        raise RequestError(f"--html {html}: expected a file in an existing directory")
    inputs = (file for path in files for file in matching_files(path))
    if any(html.exists() and file.exists() and html.samefile(file) for file in inputs):
        raise RequestError(f"--html {html}: this file is an input; expected another file")
