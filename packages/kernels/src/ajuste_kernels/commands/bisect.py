"""``ajuste kernel bisect``: which version, option or revision a difference came with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final

import typer

from ajuste.cli.options import Jobs, Json, Parameter, Quiet, Seed, example
from ajuste.cli.showing import command_line
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.model.wording import count_of
from ajuste.report.console import Activity, Console
from ajuste.report.document import Column, CommandBlock, Item, Listing, Paragraph, Report, Row, Section, Table
from ajuste.report.progress import BuildProgress
from ajuste.report.terminal import print_report
from ajuste.report.verdicts import EffectStyle, effect_style
from ajuste_kernels.bisection.session import STALLS, BisectionResult, BisectionSession, Step
from ajuste_stats.bisection import Outcome
from ajuste_stats.terms import Scale


@example(
    "ajuste kernel bisect --good debian:5.10 --bad debian:6.12 --study granularity",
    "ajuste kernel bisect --good mine:base --bad mine:desktop --study wakeup-latency --metric elapsed",
    "ajuste kernel bisect --scheduler scx_bpfland --good git:~/scx@v1.0.9 --bad git:~/scx@main "
    "--study wakeup-latency --kernel debian:6.18",
)
def bisect(
    context: typer.Context,
    good: Annotated[
        str, typer.Option(metavar="KERNEL", help="debian:5.10, mine:NAME, build:…, a .config, git:DIR@REVISION.")
    ],
    bad: Annotated[str, typer.Option(metavar="KERNEL", help="The same; the kernel that shows the difference.")],
    study: Annotated[str, typer.Option(metavar="STUDY", help="A built-in study or a study file.")],
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC", help="Metric that decides (default: the study's first), or stalls: failed trials."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Bisect this BPF scheduler of the repository in DIR; with --make, the program's path."
        ),
    ] = None,
    make: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="Command that builds the scheduler (default: as the kernel tree, cargo or make do)."
        ),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(metavar="KERNEL", help="Kernel that runs the schedulers (default: the study's).")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Source to build .config files from: debian:6.1, a directory.")
    ] = None,
    config: Annotated[
        str,
        typer.Option(
            metavar="CONFIG", help="Configuration to build revisions with: lab, lab-ext, distro or a .config."
        ),
    ] = "lab",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="OPTION=VALUE", help="Also set this option (repeatable).")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Test every version, not only the newest of each series.")
    ] = False,
    seed: Seed = None,
    parameter: Parameter = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the version, options or commit that causes a difference between two kernels or BPF schedulers.

    Each step is a study with a verdict, so noise does not mislead the search. Run the same command again to
    resume.
    """
    from ajuste.catalogue.loader import catalogue
    from ajuste.cli.choice import Choices, chosen_study
    from ajuste.run.testbed import RunOptions
    from ajuste.study.metrics import find_metric
    from ajuste_kernels.bisection.bisect import Ask, Workshop
    from ajuste_kernels.bisection.bisect import bisect as carry_out
    from ajuste_kernels.bisection.session import Measuring, step_study

    if scheduler is None and (make, kernel) != (None, None):
        raise RequestError("--make and --kernel require --scheduler", hint="add --scheduler NAME to bisect a scheduler")
    place, say = home(), Activity(log=True, quiet=quiet).say  # Each step has its own display.
    watching = partial(BuildProgress, quiet=quiet)
    known = catalogue()
    chosen = chosen_study(study, known, Choices(seed=seed, parameter=parameter))
    if kernel is not None:  # Factors are left out, also one of kernels.
        chosen = chosen.model_copy(update={"factors": ()}).with_choices(kernel=kernel)
    stalls = metric == STALLS
    decides = find_metric((None if stalls else metric) or chosen.analysis.metrics[0], chosen, known).name
    step_study(chosen, decides, "", "", 1)
    measuring = Measuring(known, RunOptions(place, jobs=jobs), command_line(context), quiet)

    def session_for(good: str, tests: int) -> BisectionSession:
        return BisectionSession(chosen, STALLS if stalls else decides, good, measuring, tests, say)

    ask = Ask(good, bad, source, config, tuple(set_ or ()), every, scheduler, make, chosen.target.kernel)
    result = carry_out(ask, Workshop(place, watching, say), session_for)
    if as_json:
        print(result.model_dump_json(indent=2))
        return

    print_report(bisection_report(result), Console(file=sys.stdout))


# A bisection as a report.


_OUTCOME_WORDS: Final[dict[Outcome, str]] = {
    "there": "there",
    "absent": "not there",
    "undecided": "undecided",
    "unusable": "not measured",
    "impossible": "cannot be built",
}
_COLUMNS: Final = (
    Column("Kernel", figure=False),
    Column("Step", figure=False),
    Column("Effect"),
    Column("Interval"),
    Column("Blocks"),
    Column("Difference", figure=False),
)


def bisection_report(result: BisectionResult) -> Report:
    """Return the report of a bisection: the answer, then each step with its verdict and the command for its report."""
    verdicts = [step.verdict for step in result.steps if step.verdict]
    styles = effect_style(verdicts, verdicts[0].unit if verdicts else "")
    rows = tuple(Row(_cells(number, step, styles)) for number, step in enumerate(result.steps))
    what = "scheduler" if result.steps and result.steps[0].kernel.startswith("scx_") else "kernel"
    title = f"{result.metric} in the study {result.study}, each {what} against the good one"
    notes = tuple(Item(step.candidate, step.note, tone="dim") for step in result.steps if step.note)
    reports = tuple(CommandBlock(step.candidate, (step.report,)) for step in result.steps if step.report)
    built = sum(step.kernel.startswith("mine:bisect-") for step in result.steps)
    built_note = f"{count_of(built, 'kernel')} built for this: see ajuste kernel list, ajuste kernel remove"
    test = f"ajuste reproduce {result.steps[0].run} --fixed -o {result.study}-test.toml" if what == "scheduler" else ""
    sections = (
        Section(title, (Table.of(_COLUMNS, rows, title=title), *((Listing(notes),) if notes else ()))),
        *((Section("Reports", reports),) if reports else ()),
        *((Section("", (Paragraph(built_note, "dim"),)),) if built else ()),
        *((Section("", (CommandBlock("test of the fix", (test,)),)),) if test else ()),
    )
    return Report(title, result.answer(), sections)


def _cells(number: int, step: Step, styles: Mapping[Scale, EffectStyle]) -> tuple[str, ...]:
    name = "ends" if number == 0 else str(number)
    if step.verdict is None:
        return (step.candidate, name, "", "", "", _OUTCOME_WORDS[step.outcome])
    style = styles[step.verdict.scale]
    effect = (style.estimate(step.verdict), style.interval(step.verdict), str(step.verdict.blocks))
    return (step.candidate, name, *effect, _OUTCOME_WORDS[step.outcome])
