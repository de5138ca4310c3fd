"""``ajuste tune``: the best configuration of a study, in few trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import chosen_cluster, chosen_study
from ajuste.cli.example import example
from ajuste.cli.measuring import check_report
from ajuste.cli.options import (
    AcceptRisk,
    ClusterAddress,
    ClusterKeys,
    Insecure,
    Jobs,
    Json,
    Kernel,
    Quiet,
    Report,
    Seed,
    StudyName,
    Target,
    Verbose,
    Workers,
)
from ajuste.cli.showing import command_line, show_results
from ajuste.design.search.goal import Search
from ajuste.design.search.sampler import SamplerName
from ajuste.machine.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.report.progress import SearchProgress
from ajuste.run.experiment import Experiment, RunOptions, conduct, goes_on, prepare_search
from ajuste.run.outcome import results_of
from ajuste.store.store import Store
from ajuste.study.schema import Study


@example(
    "ajuste tune my-study.toml --objective involuntary-switches=lower",
    "ajuste tune my-study.toml --objective elapsed --constraint 'involuntary-switches <= 200' --trials 30",
)
def tune(
    study: StudyName,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="A metric that is to become better; the study's first if not given. With two of them the choice "
            "between both is shown. Of one without a better direction say which: context-switches=lower.",
            metavar="METRIC",
            show_default=False,
        ),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            help="What must hold, against the baseline (elapsed@p95 <= +5%) or absolutely (repeatable).",
            metavar="'METRIC <= VALUE'",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials in all, with those of the baseline; 80.", show_default=False)
    ] = None,
    sampler: Annotated[
        SamplerName | None,
        typer.Option(help="What suggests the next configurations; gp, a Gaussian process.", show_default=False),
    ] = None,
    kernel: Kernel = None,
    seed: Seed = None,
    target: Target = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Search anew what was searched already.")] = False,
    report: Report = None,
    jobs: Jobs = None,
    workers: Workers = None,
    cluster: ClusterAddress = None,
    cluster_keys: ClusterKeys = None,
    insecure: Insecure = False,
    accept_risk: AcceptRisk = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Find a good configuration of STUDY in few trials.

    Searches all combinations of its factors' levels, and within their ranges; replicates the promising ones against the
    baseline; and checks the choice in fresh blocks, which alone give its verdict.

    What was measured is kept whatever happens: the same command goes on where it stopped, and shows a finished search.
    """
    check_report(report)
    known = catalogue()
    chosen = chosen_study(study, known, kernel, seed, target)
    search = _search(chosen, objective, constraint, trials, sampler)
    where = chosen_cluster(chosen, cluster, workers, jobs, keys=cluster_keys, insecure=insecure)
    if where is not None and chosen.target.kind == "host":
        raise RequestError(
            "a search by the clock of a machine goes block by block on one machine: each block follows from the last",
            hint="leave --cluster out; `ajuste compare --cluster` checks on many machines what was found",
        )
    means = RunOptions(home(), jobs=jobs, accept_risk=accept_risk, cluster=where)
    named = command_line()
    with SearchProgress(allowed=search.trials, quiet=quiet) as progress:
        watched = replace(means, say=progress.say)
        experiment = prepare_search(chosen, search, known, watched)
        with Store(means.home.store_url) as store:
            anew = fresh or not _goes_on(experiment, store)
            done = conduct(experiment, store, progress, watched, named=named, fresh=anew)
            results = results_of(done, store)
    show_results(results, report or means.home.reports / f"{done.id}.html", as_json=as_json, verbose=verbose)
    if done.stopped == "failed":
        raise RunError(
            f"the search failed: {done.stopped_because}", hint=f"ajuste report {done.id} --trials shows each"
        )


def _search(
    study: Study,
    objectives: list[str] | None,
    constraints: list[str] | None,
    trials: int | None,
    sampler: SamplerName | None,
) -> Search:
    """What the options say, and the study's table where they say nothing."""
    table = study.tune
    return Search(
        objectives=tuple(objectives or table.objectives or study.analysis.metrics[:1]),
        constraints=tuple(constraints or table.constraints),
        trials=table.trials if trials is None else trials,
        sampler=sampler or table.sampler,
    )


def _goes_on(experiment: Experiment, store: Store) -> bool:
    """A finished search is shown, whatever the clock: to search again is asked for."""
    kept = store.latest_run(experiment.fingerprint, experiment.resolved.study.design.seed)
    return goes_on(experiment, store) or (kept is not None and kept.stopped in ("decided", "budget"))
