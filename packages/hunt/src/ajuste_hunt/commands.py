"""``ajuste hunt``: find the rare failure or stall of a job, and hand over what repeats it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.cli import options
from ajuste.cli.choice import Choices, chosen_study
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Only, example, spread
from ajuste.cli.saving import check_save, study_text
from ajuste.cli.showing import Showing, command_line, open_report
from ajuste.kernel.spec import parse_spec
from ajuste.machine.files import write_text
from ajuste.machine.home import home, require_extra
from ajuste.model.error import Place, RequestError, RunError
from ajuste.report.console import Activity, Console
from ajuste.report.terminal import ONE_SCREEN, print_report
from ajuste.run.testbed import RunOptions, kernel_testbed
from ajuste.study.builtin import builtin_studies
from ajuste.study.command_line.defaults import DEFAULT_KERNEL
from ajuste.study.command_line.request import CommandLine, Request, seconds, split_commands
from ajuste.study.command_line.study import adhoc_document
from ajuste.study.metrics import find_metric
from ajuste.study.read import checked_study
from ajuste.study.schema import Study
from ajuste_hunt.goal import read_goal, read_time
from ajuste_hunt.hunt import Hunted, Question
from ajuste_hunt.hunt import hunt as hunted
from ajuste_hunt.report import hunt_report

NAME: Final = "hunt"
DEFAULT_TRIALS: Final = 1000
DEFAULT_TIME: Final = "10m"
DEFAULT_PAUSE: Final = "5ms"
_LONGEST_PAUSE_S: Final = 10.0

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STUDY | COMMAND [ARGUMENT]...",
        help="A study with one configuration, or a command: a program with arguments (run without a shell), or a "
        "workload of the catalogue.",
        show_default=False,
    ),
]


@example(
    "ajuste hunt --until 'elapsed > 2x' --cpus 2 --max-trials 24 -- hackbench groups=1 loops=5",
    "ajuste hunt --until 'exit != 0' --cpus 2 --file ./job --output found.toml -- ./job",
)
@spread
def hunt(
    context: typer.Context,
    words: Words = None,
    *,
    until: Annotated[
        str,
        options.option(
            "The goal: 'exit != 0', hung, 'dmesg: PATTERN', 'stall > 50ms' (a task could run and had no CPU), or a "
            "metric's limit such as 'elapsed > 10x' (times what is usual).",
            "GOAL",
            "--until",
        ),
    ],
    request: Annotated[
        Request,
        Only(
            "kernel guest_cpus memory topology scratch scratch_size setup prepare cleanup file package service ready "
            "timeout seed as_root background metric name"
        ),
    ],
    max_trials: Annotated[
        int,
        options.option(f"Trials to search with (default: {DEFAULT_TRIALS}).", "N", "--max-trials"),
    ] = DEFAULT_TRIALS,
    max_time: Annotated[
        str, options.option(f"Time to search for (default: {DEFAULT_TIME}).", "DURATION", "--max-time")
    ] = DEFAULT_TIME,
    longest_pause: Annotated[
        str,
        options.option(
            f"The longest time that a CPU stands still at once (default: {DEFAULT_PAUSE}).",
            "DURATION",
            "--longest-pause",
        ),
    ] = DEFAULT_PAUSE,
    seeds_only: Annotated[
        bool, options.option("Draw only seeds, no pauses: to compare with.", None, "--seeds-only")
    ] = False,
    output: Annotated[Path | None, options.option("Write what repeats it as a study file.", "FILE", "--output")] = None,
    perfetto: Annotated[
        Path | None,
        options.option("Write a trace of the trial, and of one without pauses, for Perfetto.", "FILE", "--perfetto"),
    ] = None,
    force: options.Force = False,
    fresh: options.Fresh = False,
    workers: options.Workers = None,
    showing: Showing,
) -> int:
    """Search for the rare trial in which a job fails, hangs or stalls, and write what repeats it.

    The job runs in a guest under the virtual clock, again and again, each time with another seed and with other
    moments at which a CPU stands still, as CPUs do on real machines. What is found is repeated, its pauses are left out
    one by one until only those remain that are needed, and a study file repeats it to the bit on every machine.

    Exit code 3 says that it was found, 0 that it was not. Run the same command again to resume.
    """
    check_report(showing.report)
    check_save(output, "--output")
    if output is not None and output.exists() and not force:
        raise RequestError(f"--output {output}: the file exists", hint="use --force to overwrite it, or choose another")
    if perfetto is not None:
        require_extra("perfetto")
    known = catalogue()
    study = _study(tuple(words or ()), request, known)
    goal = read_goal(until, lambda name: find_metric(name, study, known).unit)
    if max_trials < 1:
        raise RequestError(f"found {max_trials} trials; expected 1 or more", place=Place("--max-trials"))
    with Activity(log=not showing.silent, quiet=showing.silent) as activity:
        run_options = RunOptions(home(), jobs=workers, say=activity.say, warn=activity.say)
        if study.schedulers:
            study = kernel_testbed(run_options).with_schedulers(study).study
        question = Question(
            study=study,
            goal=goal,
            catalogue=known,
            options=run_options,
            named=command_line(context),
            max_trials=max_trials,
            max_seconds=seconds("--max-time", max_time),
            longest_ns=_pause_ns(longest_pause),
            plain_only=seeds_only,
            own_limit=request.timeout is not None or not _is_command(words),
            fresh=fresh,
        )
        result = hunted(question)
    document = result.hunt
    if output is not None and result.reproducer is not None:
        # Names of files stay as they are: a program of another name is laid out otherwise in memory.
        write_text(output, study_text(result.reproducer.document()))
        document = document.model_copy(update={"reproducer": str(output)})
    if perfetto is not None:
        _write_trace(perfetto, result)
    report = hunt_report(document)
    path = showing.report or home().reports / f"{study.name}-hunt.html"
    if showing.as_json:
        typer.echo(document.model_dump_json(indent=2))
    else:
        print_report(report, Console(file=sys.stdout), verbose=showing.verbose, path=path, most_lines=ONE_SCREEN)
    sys.stdout.flush()
    from ajuste.report.html import write_report  # not before the answer is printed

    try:
        write_report(report, path)
    except OSError as failure:
        raise RunError(f"the report was not written: {path}: {failure.strerror or failure}") from failure
    if showing.browser:
        open_report(path)
    return 3 if document.finding else 0


def _is_command(words: list[str] | None) -> bool:
    return not (words and len(words) == 1 and (words[0].endswith(".toml") or words[0] in _studies()))


def _studies() -> set[str]:
    return {study.name for study in builtin_studies()} - set(catalogue().workloads)


def _study(words: tuple[str, ...], request: Request, known: Catalogue) -> Study:
    if not words:
        raise RequestError(
            "the job is missing", hint="ajuste hunt --until GOAL -- COMMAND [ARGUMENT…], or name a study"
        )
    if not _is_command(list(words)):
        return chosen_study(words[0], known, Choices(kernel=request.kernel, seed=request.seed))
    commands = split_commands(words)
    if len(commands) > 1:
        raise RequestError(f"found {len(commands)} commands; expected one", hint="name one command at a time")
    request = replace(
        request, commands=commands, name=request.name or NAME, vm=True, kernel=request.kernel or DEFAULT_KERNEL
    )
    document, origin = adhoc_document(request, known)
    return checked_study(document, CommandLine(origin.options, command="ajuste hunt"), known, parse_kernel=parse_spec)


def _pause_ns(text: str) -> int:
    length_s = read_time("--longest-pause", text)
    if not 1e-6 <= length_s <= _LONGEST_PAUSE_S:
        raise RequestError(f"--longest-pause {text}: expected from 1us to {_LONGEST_PAUSE_S:.0f}s")
    return round(1e9 * length_s)


def _write_trace(path: Path, result: Hunted) -> None:
    if result.decisions is None or result.hunt.story is None or result.hunt.story.parts is None:
        return
    from ajuste_guest.report.perfetto import Followed, write_trace

    plain, showing = result.decisions
    write_trace(
        path,
        Followed("without pauses", result.kernel, plain),
        Followed("with the pauses", result.kernel, showing),
        result.hunt.story.parts,
    )
