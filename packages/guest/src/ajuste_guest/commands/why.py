"""``ajuste why``: explain by the scheduler's decisions why a configuration differs from the baseline."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.measuring import check_report
from ajuste.cli.options import AcceptRisk, Json, Verbose, Wait, example, wait_seconds
from ajuste.machine.home import home, require_extra
from ajuste.model.error import RequestError, RunError
from ajuste.model.explanation import EXPLANATIONS, Explanation, Recorded
from ajuste.model.results import Results
from ajuste.model.wording import visible
from ajuste.report.console import Activity, Console
from ajuste.report.format import result_labels
from ajuste.report.html import write_report
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste.run.outcome import results_of
from ajuste.run.testbed import RunOptions
from ajuste.study.problem import nearest
from ajuste_guest.analysis.explanation import deciding_configuration
from ajuste_guest.recordings import record, require_followable
from ajuste_guest.report.costs import called_in
from ajuste_guest.report.divergence import divergence_report
from ajuste_guest.report.scheduling import explanation_report

if TYPE_CHECKING:
    from ajuste.store.store import Store


@example(
    "ajuste why granularity",
    "ajuste why talk --json",
    "ajuste why talk --divergence",
    "ajuste why talk --divergence --perfetto talk.pftrace",
)
def why(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, or a study (its newest run).")],
    configuration: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIGURATION",
            help="The configuration to explain (default: the best, or the one that differs most).",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the HTML report of the run to this file.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Record again; do not use the store's recording.")] = False,
    divergence: Annotated[
        bool,
        typer.Option("--divergence", help="Find the first decision of the scheduler that differs (virtual clock)."),
    ] = False,
    perfetto: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --divergence: write a trace of both trials for Perfetto to this file."),
    ] = None,
    accept_risk: AcceptRisk = False,
    wait: Wait = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Explain why a configuration differs from the baseline.

    Records what the kernel's scheduler does in one more trial of both, with the run's own machine and seed, and says
    what changed: switches and their causes, how long runs and waits last, who preempts whom. Under the virtual clock
    it also counts instructions, and says which functions and system calls make up the difference. The recordings are
    kept with the run, and its report shows them.

    With --divergence it follows both trials decision by decision: every switch, wake-up and preemption of one seed. It
    says which decision is the first that differs, when, on which CPU, by which functions, and what follows. Open the
    trace of --perfetto at https://ui.perfetto.dev to see both trials one above the other.
    """
    from ajuste.store.store import Store

    check_report(html, "--html")
    _check_perfetto(perfetto, divergence=divergence)
    place = home()
    with Store(place.store_url) as store:
        stored = store.find_run(run)
        results = results_of(stored, store)
        if divergence:
            require_followable(stored)
        chosen = _chosen(results, configuration, store)
        with Activity(quiet=as_json) as activity:
            run_options = RunOptions(place, accept_risk=accept_risk, say=activity.say, wait_s=wait_seconds(wait))
            record(stored, chosen, store, catalogue(), run_options, fresh=fresh, decisions=divergence)
        results = results_of(stored, store)
        recorded = store.recorded(stored) if perfetto is not None else {}
    explanation = next(candidate for candidate in EXPLANATIONS.of(results) if candidate.configuration == chosen)
    path = html or place.reports / f"{stored.id}.html"
    write_report(results_report(results), path)
    if perfetto is not None:
        _write_perfetto(perfetto, results, explanation, recorded)
    is_known = bool(explanation.sentences) or explanation.costs is not None
    if as_json:
        typer.echo(explanation.model_dump_json(indent=2))
    elif divergence and explanation.divergence is not None:
        print_report(divergence_report(results, explanation), Console(file=sys.stdout))
        if perfetto is not None:
            typer.echo(f"\nTrace of both trials: {visible(str(perfetto))} (open it at https://ui.perfetto.dev)")
    elif is_known:
        summary = explanation_report(results, explanation, verbose=verbose)
        print_report(summary, Console(file=sys.stdout), verbose=verbose, path=path)
    if divergence and explanation.divergence is None:
        raise RunError(
            f"the decisions could not be followed: {explanation.notes[-1] if explanation.notes else 'no reason given'}",
            hint="use a guest with the virtual clock, such as --kernel debian:6.12",
        )
    if not is_known:
        raise RunError(
            explanation.notes[0] if explanation.notes else "the scheduler could not be recorded",
            hint="run as root with tracefs mounted (mount -t tracefs none /sys/kernel/tracing)",
        )


def _check_perfetto(path: Path | None, *, divergence: bool) -> None:
    if path is None:
        return
    if not divergence:
        raise RequestError("--perfetto requires --divergence", hint="add --divergence")
    require_extra("perfetto")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise RequestError(
            f"--perfetto {path}: expected a file in an existing directory", hint="choose a file that you can write"
        )


def _write_perfetto(path: Path, results: Results, explanation: Explanation, recorded: Mapping[str, Recorded]) -> None:
    if explanation.divergence is None:
        return
    from ajuste_guest.report.perfetto import Followed, write_trace

    pair = (recorded[explanation.baseline.configuration], recorded[explanation.configuration])
    called = called_in(results, explanation, result_labels(results))
    baseline, other = (
        Followed(name, recording.kernel, recording.decisions)
        for name, recording in zip(called, pair, strict=True)
        if recording.decisions is not None
    )
    write_trace(path, baseline, other, explanation.divergence)


def _chosen(results: Results, configuration: str | None, store: Store) -> str:
    names = [candidate.name for candidate in results.configurations if not candidate.baseline]
    if configuration is None:
        chosen = deciding_configuration(results)
        if chosen is None:
            raise RequestError(
                "nothing in this run is compared with the baseline yet", hint="measure more blocks, then try again"
            )
        return chosen
    if configuration not in names:
        if any(configuration in (head.id, head.study) for head in store.runs()):
            raise RequestError(
                f"{configuration!r} is a run; expected a configuration of {results.run}",
                hint="name one run, and a configuration of it",
            )
        is_baseline = any(candidate.name == configuration for candidate in results.configurations)
        what = "the baseline; expected another configuration" if is_baseline else "no configuration"
        raise RequestError(
            f"{configuration!r} is {what}{nearest(configuration, names)}",
            hint=f"choose one of {', '.join(names[:10])}{', …' if len(names) > 10 else ''}",
        )
    return configuration
