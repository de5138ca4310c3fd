"""``ajuste tune``: the best configuration of a study, in few trials."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import Choices, Machines, built_for, chosen_study
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Only, example, spread
from ajuste.cli.showing import Showing, command_line
from ajuste.machine.home import require_extra
from ajuste.model.error import RequestError
from ajuste.model.search import SamplerName, Search
from ajuste.run.experiment import goes_on, measured
from ajuste.run.testbed import Experiment
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import Study
from ajuste_search.tuning.experiment import SearchPreparation
from ajuste_search.tuning.progress import SearchProgress
from ajuste_search.tuning.study import searched_study

if TYPE_CHECKING:
    from ajuste.store.store import Store


@example(
    "ajuste tune my-study.toml --objective involuntary-switches=lower",
    "ajuste tune my-study.toml --objective elapsed --constraint 'involuntary-switches <= 200' --trials 30",
)
@spread
def tune(
    context: typer.Context,
    study: options.StudyName,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="Metric to improve (default: the study's first). With two, the trade-off between both is shown. "
            "Append =lower or =higher to a metric without a better direction: context-switches=lower.",
            metavar="METRIC",
            show_default=False,
        ),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            help="A condition that must hold, relative to the baseline (elapsed@p95 <= +5%) or absolute (repeatable).",
            metavar="'METRIC <= VALUE'",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Number of trials, including the baseline's (default: 80).", show_default=False),
    ] = None,
    sampler: Annotated[
        SamplerName | None,
        typer.Option(help="Search method (default: gp, a Gaussian process).", show_default=False),
    ] = None,
    *,
    choices: Annotated[Choices, Only("kernel seed target set parameter without")],
    fresh: Annotated[bool, typer.Option("--fresh", help="Search again; do not use the store's search.")] = False,
    machines: Machines,
    showing: Showing,
) -> None:
    """Find a good configuration of STUDY in few trials.

    Searches all combinations of its factors' levels, and within their ranges; replicates the promising ones against the
    baseline; and checks the choice in fresh blocks, which alone give its verdict.

    All measurements are kept. Run the same command again to resume, or to show a finished search.
    """
    check_report(showing.report)
    known = catalogue()
    chosen = chosen_study(study, known, choices)
    search = _search(chosen, objective, constraint, trials, sampler)
    searched_study(chosen, search, known)  # report errors first
    require_extra("search")
    where = machines.cluster_for(chosen)
    if where is not None and chosen.target.on_host:
        raise RequestError(
            "--cluster does not support a search under the wall clock: each block depends on the last",
            hint="remove --cluster; check the result on many machines with `ajuste compare --cluster`",
        )
    run_options = replace(machines.run_options(), cluster=where)
    named = command_line(context)
    preparation = SearchPreparation(search)
    names = built_for(chosen, known, run_options, quiet=showing.silent, resolving=preparation.resolve)
    chosen = with_kernels(chosen, names)

    def anew(experiment: Experiment, store: Store) -> bool:
        # A finished search is shown under the wall clock, too: only --fresh searches again.
        latest = store.latest_run(experiment.fingerprint, experiment.resolved.study.design.seed)
        finished = latest is not None and latest.stopped in ("decided", "budget")
        return fresh or not (finished or goes_on(experiment, store))

    display = SearchProgress(allowed=search.trials, quiet=showing.quiet)
    with measured(
        chosen, known, run_options, named=named, anew=anew, preparing=preparation.prepare, display=display
    ) as measurement:
        done, results = measurement.run, measurement.results()
    showing.show(results, again=done.created if measurement.again else "")
    if done.stopped == "failed":
        raise measurement.failure("the search")


def _search(
    study: Study,
    objectives: list[str] | None,
    constraints: list[str] | None,
    trials: int | None,
    sampler: SamplerName | None,
) -> Search:
    # Options take precedence over the study's table.
    table = study.tune
    return Search(
        objectives=tuple(objectives or table.objectives or study.analysis.metrics[:1]),
        constraints=tuple(constraints or table.constraints),
        trials=table.trials if trials is None else trials,
        sampler=sampler or table.sampler,
    )
