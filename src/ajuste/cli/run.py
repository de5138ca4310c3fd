"""``ajuste run``: carry out a study, to a verdict and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import chosen_study
from ajuste.cli.options import AcceptRisk, Json, Kernel, Seed, StudyName
from ajuste.cli.showing import show_results
from ajuste.experiment import Means, conduct, prepare
from ajuste.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.outcome import results_of
from ajuste.report.progress import Progress
from ajuste.store.store import Store


def run(
    study: StudyName,
    kernel: Kernel = None,
    seed: Seed = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure anew what is in the store already.")] = False,
    report: Annotated[Path | None, typer.Option(help="Where to write the HTML report.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Guests at once under the virtual clock; as many as CPUs if not given.")
    ] = None,
    snapshot: Annotated[bool, typer.Option(help="Start every trial from one snapshot, or boot for each.")] = True,
    accept_risk: AcceptRisk = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Carry out STUDY to a verdict and a report.

    Boots its kernel, measures in randomised blocks, and stops when the answer is known.

    What was measured is kept whatever happens: the same command goes on where it stopped, and shows a finished run.
    """
    if report is not None and (report.is_dir() or not report.absolute().parent.is_dir()):
        raise RequestError(f"--report {report}: expected a file in a directory that is there")
    known = catalogue()
    chosen = chosen_study(study, known, kernel, seed)
    place = home()
    budget = chosen.budget
    with Progress(
        min_blocks=budget.min_blocks,
        max_blocks=budget.max_blocks,
        max_seconds=60 * budget.max_minutes,
        metric=known.metrics.get(chosen.analysis.metrics[0]),
        quiet=quiet,
    ) as progress:
        means = Means(place, jobs=jobs, snapshot=snapshot, accept_risk=accept_risk, say=progress.say)
        experiment = prepare(chosen, known, means)
        with Store(place.store_url) as store:
            done = conduct(experiment, store, progress, means, named=study, fresh=fresh)
            results = results_of(done, store)
    show_results(results, report or place.reports / f"{done.id}.html", as_json=as_json)
    if done.stopped == "failed":
        raise RunError(f"the study failed: {done.stopped_because}", hint=f"ajuste report {done.id} --trials shows each")
