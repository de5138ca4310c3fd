"""``ajuste advise``: what to change so that a workload gets better."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import Machines
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Only, example, spread
from ajuste.cli.showing import Showing, command_line, contents_of, open_report
from ajuste.design.goal import split_objective
from ajuste.machine.files import write_text
from ajuste.machine.home import home
from ajuste.model.error import RunError
from ajuste.report.console import Console
from ajuste.report.terminal import ONE_SCREEN, print_report
from ajuste.study.command_line.option import Option
from ajuste.study.command_line.request import Request, seconds, split_commands
from ajuste_advise.advise import advise as advise_on
from ajuste_advise.budget import Budget
from ajuste_advise.question import NAME, Question, require_one_command
from ajuste_advise.report import advice_report
from ajuste_stats.terms import Direction

DEFAULT_MAX_TIME: Final = "10m"

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND [ARGUMENT]...",
        help="The command to make better: a program with arguments (run without a shell), or a workload of the "
        "catalogue.",
        show_default=False,
    ),
]


@example(
    "ajuste advise --vm --dry-run -- hackbench groups=2 loops=20",
    "ajuste advise --vm --dry-run --background spin -- linpack reps_to=2",
)
@spread
def advise(
    context: typer.Context,
    words: Words = None,
    *,
    request: Annotated[
        Request,
        Only(
            "vm kernel clock guest_cpus memory topology scratch scratch_size setup prepare cleanup file package "
            "service ready timeout seed as_root ignore_failure",
            background=Option("Run this command in the background (repeatable).", "COMMAND"),
            metric=Option(
                "Metric to improve, as for `ajuste compare`; append =lower or =higher to one without a better "
                "direction. Further ones are watched (repeatable).",
                "METRIC",
            ),
            min_effect=Option("Smallest effect that matters (default: 2%).", "SHARE"),
            confidence=Option("Confidence of the answer (default: 95%).", "SHARE"),
            max_time=Option("Time for all of it (default: 10m, or none with --max-trials).", "DURATION"),
            name=Option("Name of its runs (default: advise).", "NAME"),
        ),
    ],
    machines: Machines,
    constraint: Annotated[
        list[str] | None,
        options.option(
            "A condition that must hold of what is advised, relative to the baseline (elapsed@p95 <= +5%) or absolute "
            "(repeatable).",
            "'METRIC <= VALUE'",
            "--constraint",
        ),
    ] = None,
    max_trials: Annotated[
        int | None,
        options.option(
            "Trials for all of it. Alone, it makes the advice on a guest under the virtual clock the same on every "
            "machine.",
            "N",
            "--max-trials",
        ),
    ] = None,
    dry_run: Annotated[
        bool, options.option("Only look where the time goes and choose settings; change nothing.", None, "--dry-run")
    ] = False,
    fresh: options.Fresh = False,
    functions: Annotated[
        bool,
        typer.Option("--functions/--no-functions", help="In a guest, also count which functions the time goes to."),
    ] = True,
    output: Annotated[
        Path | None, options.option("Also write the JSON document to this file.", "FILE", "--output")
    ] = None,
    showing: Showing,
) -> None:
    """Find what to change so that a command gets better, and prove it.

    Looks where the time goes, chooses the settings of the catalogue that can matter for that, tries each, searches the
    combinations of those that help, and proves the best in fresh blocks. Without --vm or --kernel this machine's
    settings are tried, most of which require root; each is restored after its trial.

    Run the same command again to resume, or to show a finished answer.
    """
    check_report(showing.report)
    check_report(output, "--output")
    request = replace(request, commands=split_commands(tuple(words or ())), name=request.name or NAME)
    require_one_command(request)
    metrics, direction = _directed(request.metric)
    run_options = machines.run_options()
    question = Question(
        request=replace(request, max_time=None, metric=metrics),
        catalogue=catalogue(),
        options=run_options,
        budget=_budget(request.max_time, max_trials),
        named=command_line(context),
        fresh=fresh,
        quiet=showing.silent,
        accept_risk=run_options.accept_risk,
        direction=direction,
        constraints=tuple(constraint or ()),
    )
    advice = advise_on(question, functions=functions, dry=dry_run)
    if output is not None:
        write_text(output, advice.model_dump_json(indent=2))
    report = advice_report(advice)
    path = showing.report or home().reports / f"{advice.stages[-1].run}-advice.html"
    if showing.as_json:
        typer.echo(advice.model_dump_json(indent=2))
    else:
        print_report(report, Console(file=sys.stdout), verbose=showing.verbose, path=path, most_lines=ONE_SCREEN)
    sys.stdout.flush()
    from ajuste.report.html import write_report  # not before the answer is printed

    try:
        write_report(report, path, contents_of(advice))
    except OSError as failure:
        raise RunError(f"the report was not written: {path}: {failure.strerror or failure}") from failure
    if showing.browser:
        open_report(path)


def _budget(max_time: str | None, max_trials: int | None) -> Budget:
    if max_time is None and max_trials is None:
        max_time = DEFAULT_MAX_TIME
    return Budget(None if max_time is None else seconds("--max-time", max_time), max_trials)


def _directed(metrics: Sequence[str]) -> tuple[tuple[str, ...], Direction | None]:
    # The metrics without the direction that stands after the first: --metric context-switches=lower.
    if not metrics or metrics[0].rpartition("=")[2] not in ("lower", "higher") or "," in metrics[0]:
        return tuple(metrics), None
    name, direction = split_objective(metrics[0])
    return (name, *metrics[1:]), direction
