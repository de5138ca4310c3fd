"""``ajuste kernel bisect``: which version, option or revision a difference came with."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.cli.command_line import command_line
from ajuste.cli.example import example
from ajuste.cli.options import Jobs, Json, Parameter, Quiet, Seed
from ajuste.cli.telling import telling
from ajuste.home import home
from ajuste.report.build_progress import BuildProgress
from ajuste.report.visible import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ajuste.kernel.bisect.session import Session


@example(
    "ajuste kernel bisect --good debian:5.10 --bad debian:6.12 --study granularity",
    "ajuste kernel bisect --good mine:base --bad mine:desktop --study wakeup-latency --metric elapsed",
)
def bisect(
    good: Annotated[str, typer.Option(metavar="KERNEL", help="debian:5.10, mine:NAME, a .config, git:DIR@REVISION.")],
    bad: Annotated[str, typer.Option(metavar="KERNEL", help="The same, with the difference that is sought.")],
    study: Annotated[str, typer.Option(metavar="STUDY", help="What is measured: a built-in study or a study file.")],
    metric: Annotated[
        str | None, typer.Option(metavar="METRIC", help="What decides; the study's first metric if not given.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="What .config files are built from: debian:6.1, a directory.")
    ] = None,
    config: Annotated[
        str, typer.Option(metavar="CONFIG", help="How revisions are built: lab, lab-ext, distro or a .config.")
    ] = "lab",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="OPTION=VALUE", help="And with this option (repeatable).")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Of versions every one there is, not only the newest of each series.")
    ] = False,
    seed: Seed = None,
    parameter: Parameter = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the version, the options or the commit that a difference between two kernels came with.

    Every step is a study of its own with a verdict, so that noise does not mislead the search. The same command goes on
    where it stopped.
    """
    from ajuste.kernel.bisect.bisect import Ask, Workshop
    from ajuste.kernel.bisect.bisect import bisect as carry_out

    place, say = home(), telling(quiet=quiet)

    @contextmanager
    def watching() -> Iterator[BuildProgress]:
        with BuildProgress(quiet=quiet) as progress:
            yield progress

    ask = Ask(good, bad, source, config, tuple(set_ or ()), every)
    found = carry_out(ask, Workshop(place, watching, say), _sessions(study, metric, seed, parameter, jobs, quiet, say))
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    from ajuste.cli.kernel_bisect_sheet import print_found

    print_found(found, Console(file=sys.stdout))


def _sessions(
    study: str,
    metric: str | None,
    seed: int | None,
    parameter: list[str] | None,
    jobs: int | None,
    quiet: bool,
    say: Callable[[str], None],
) -> Callable[[str, int], Session]:
    """What opens a session for a good kernel. Raises RequestError for what is wrong with the study."""
    from ajuste.catalogue.loader import catalogue
    from ajuste.cli.choice import chosen_study
    from ajuste.experiment import Means
    from ajuste.kernel.bisect.measuring import Measuring
    from ajuste.kernel.bisect.session import Session, step_study
    from ajuste.study.measures import find_metric

    known = catalogue()
    chosen = chosen_study(study, known, None, seed, None, parameter)
    decides = find_metric(metric or chosen.analysis.metrics[0], chosen, known).name
    step_study(chosen, decides, "", "", 1)
    measuring = Measuring(known, Means(home(), jobs=jobs), command_line(), quiet)
    return lambda good, tests: Session(chosen, decides, good, measuring, tests, say)
