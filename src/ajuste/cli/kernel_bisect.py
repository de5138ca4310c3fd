"""``ajuste kernel bisect``: which version, option or revision a difference came with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Final

import typer

from ajuste.cli.options import Jobs, Json, Parameter, Quiet, Seed, example
from ajuste.cli.showing import command_line
from ajuste.design.bisection import Outcome
from ajuste.machine.home import home
from ajuste.model.metric import Scale
from ajuste.model.wording import count_of
from ajuste.report.console import Console
from ajuste.report.display import Activity
from ajuste.report.document import Column, CommandBlock, Item, Listing, Paragraph, Report, Row, Section, Table
from ajuste.report.progress import BuildProgress
from ajuste.report.terminal import print_report
from ajuste.report.verdicts import EffectStyle, effect_style
from ajuste.run.bisection.session import BisectionResult, BisectionSession, Step


@example(
    "ajuste kernel bisect --good debian:5.10 --bad debian:6.12 --study granularity",
    "ajuste kernel bisect --good mine:base --bad mine:desktop --study wakeup-latency --metric elapsed",
)
def bisect(
    good: Annotated[
        str, typer.Option(metavar="KERNEL", help="debian:5.10, mine:NAME, build:…, a .config, git:DIR@REVISION.")
    ],
    bad: Annotated[str, typer.Option(metavar="KERNEL", help="The same; the kernel that shows the difference.")],
    study: Annotated[str, typer.Option(metavar="STUDY", help="A built-in study or a study file.")],
    metric: Annotated[
        str | None, typer.Option(metavar="METRIC", help="Metric that decides (default: the study's first).")
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
    """Find the version, options or commit that causes a difference between two kernels.

    Each step is a study with a verdict, so noise does not mislead the search. Run the same command again to
    resume.
    """
    from ajuste.run.bisection.bisect import Ask, Workshop
    from ajuste.run.bisection.bisect import bisect as carry_out

    place, say = home(), Activity(log=True, quiet=quiet).say  # Each step has its own display.
    watching = partial(BuildProgress, quiet=quiet)
    ask = Ask(good, bad, source, config, tuple(set_ or ()), every)
    found = carry_out(ask, Workshop(place, watching, say), _sessions(study, metric, seed, parameter, jobs, quiet, say))
    if as_json:
        print(found.model_dump_json(indent=2))
        return

    print_report(bisection_report(found), Console(file=sys.stdout))


def _sessions(
    study: str,
    metric: str | None,
    seed: int | None,
    parameter: list[str] | None,
    jobs: int | None,
    quiet: bool,
    say: Callable[[str], None],
) -> Callable[[str, int], BisectionSession]:
    """What opens a session for a good kernel. Raises RequestError for what is wrong with the study."""
    from ajuste.catalogue.loader import catalogue
    from ajuste.cli.choice import chosen_study
    from ajuste.run.bisection.session import Measuring, step_study
    from ajuste.run.testbed import RunOptions
    from ajuste.study.measures import find_metric

    known = catalogue()
    chosen = chosen_study(study, known, None, seed, None, parameter)
    decides = find_metric(metric or chosen.analysis.metrics[0], chosen, known).name
    step_study(chosen, decides, "", "", 1)
    measuring = Measuring(known, RunOptions(home(), jobs=jobs), command_line(), quiet)
    return lambda good, tests: BisectionSession(chosen, decides, good, measuring, tests, say)


# A bisection as a report.


_SAID: Final[dict[Outcome, str]] = {
    "there": "there",
    "absent": "not there",
    "undecided": "undecided",
    "unusable": "not measured",
    "impossible": "kernel not found",
}
_COLUMNS: Final = (
    Column("Kernel", figure=False),
    Column("Step", figure=False),
    Column("Effect"),
    Column("Interval"),
    Column("Blocks"),
    Column("Difference", figure=False),
)


def bisection_report(found: BisectionResult) -> Report:
    """The answer, then every step with its verdict and where its report is."""
    styles = effect_style([one.verdict for one in found.steps if one.verdict], _unit(found))
    rows = tuple(Row(_cells(number, step, styles)) for number, step in enumerate(found.steps))
    title = f"{found.metric} in the study {found.study}, each kernel against the good one"
    notes = tuple(Item(step.candidate, step.note, tone="dim") for step in found.steps if step.note)
    reports = tuple(CommandBlock(step.candidate, (step.report,)) for step in found.steps if step.report)
    built = sum(step.kernel.startswith("mine:bisect-") for step in found.steps)
    kept = f"{count_of(built, 'kernel')} built for this: see ajuste kernel list, ajuste kernel remove"
    sections = (
        Section(title, (Table.of(_COLUMNS, rows, title=title), *((Listing(notes),) if notes else ()))),
        *((Section("Reports", reports),) if reports else ()),
        *((Section("", (Paragraph(kept, "dim"),)),) if found.kind != "versions" else ()),
    )
    return Report(title, found.answer(), sections)


def _cells(number: int, step: Step, styles: Mapping[Scale, EffectStyle]) -> tuple[str, ...]:
    name = "ends" if number == 0 else str(number)
    if step.verdict is None:
        return (step.candidate, name, "", "", "", _SAID[step.outcome])
    style = styles[step.verdict.scale]
    effect = (style.estimate(step.verdict), style.interval(step.verdict), str(step.verdict.blocks))
    return (step.candidate, name, *effect, _SAID[step.outcome])


def _unit(found: BisectionResult) -> str:
    return next((step.verdict.unit for step in found.steps if step.verdict), "")
