"""``ajuste report``: list, show and compare runs in the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ajuste.cli.listing import RunFilter, show_list, since_of
from ajuste.cli.options import Json, Open, Verbose, example
from ajuste.machine.files import write_text
from ajuste.machine.home import Home, home, plugin_of, require_extra
from ajuste.model.error import RequestError
from ajuste.model.plugins import load_plugin, plugins
from ajuste.model.wording import visible, visible_line
from ajuste.store.head import RunNotes

if TYPE_CHECKING:  # The list of runs needs no more than the standard library.
    from ajuste.model.results import Results
    from ajuste.store.head import Head, Run
    from ajuste.store.store import Store

_DRAWN: Final = ("svg", "png")
_FORMS: Final = (*_DRAWN, "lkml")


@example(
    "ajuste report",
    "ajuste report --kernel debian:5.10 --since 30d",
    "ajuste report messages --html messages.html",
    "ajuste report messages --pictures figures",
    "ajuste report messages --markdown messages.md",
    "ajuste report messages --format lkml",
    "ajuste report messages --format handout -o messages.pdf --language es",
)
def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="A run, a study (its newest run), or a suite (suite-NAME). Several runs are compared.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the HTML report to this file.")] = None,
    open_: Open = False,
    pictures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write every picture of the report to this directory.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format of the pictures: svg (the default) or png. lkml: print plain-text tables for a mail instead. "
            "handout: write one or two pages to the file of --output.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="With --format handout: the file, FILE.pdf or FILE.typ."),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="CODE", help="With --format handout: en, es or ru.")
    ] = "en",
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results to this file as Markdown.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="With --format lkml: explain the figures by the recordings of this run, such as one in a guest.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Show the figures of these metrics (repeatable)."),
    ] = None,
    three_sigma: Annotated[
        bool, typer.Option("--three-sigma", help="Also show the verdict of the 3-sigma rule.")
    ] = False,
    trials: Annotated[bool, typer.Option("--trials", help="Show the output of every trial.")] = False,
    kernel: Annotated[
        str | None, typer.Option(metavar="TEXT", help="List only runs on kernels with this text.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option(metavar="TEXT", help="List only runs of workloads with this text.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="WORD", help="List only runs with this tag.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="List only runs since then: 2026-11-30, or 7d for 7 days.")
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="List only runs with this text in their name, id, answer or note."),
    ] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Show a run from the store; without RUN, list all runs; with several, compare them."""
    _check_text(form, runs or (), pictures=pictures, trials=trials, as_json=as_json)
    _check_pictures(form, pictures, mechanism, of_run=bool(runs))
    _check_output(form, output, runs or ())
    _check_page(html)
    place = home()
    wanted = RunFilter(kernel or "", workload or "", tag or "", since_of(since), find or "")
    if runs and wanted != RunFilter():
        raise RequestError("filters conflict with RUN: they choose what is listed", hint="remove RUN, or the filters")
    if len(runs or ()) > 1 and (html or pictures or markdown or metric or trials or three_sigma):
        raise RequestError(
            "--html, --pictures, --markdown, --three-sigma and --trials apply to one run; found several",
            hint="name one RUN",
        )
    if not runs:
        only_of_one = {"--html": html, "--pictures": pictures, "--markdown": markdown, "--metric": metric}
        _refuse_without_run(
            {**only_of_one, "--format": form, "--trials": trials, "--open": open_, "--three-sigma": three_sigma}
        )
        show_list(_listed(place.store_url), RunNotes(place).all(), wanted, as_json=as_json)
        return
    from ajuste.cli.showing import Showing

    showing = Showing(html, browser=open_, verbose=verbose, as_json=as_json)
    if len(runs) == 1 and (stored := _beside_runs(place, runs[0])) is not None:
        if pictures is not None or output is not None or metric or trials or three_sigma:
            raise RequestError(
                "--pictures, --output, --metric, --three-sigma and --trials apply to one run; found a suite",
                hint="name a member's run",
            )
        module, record = stored
        module.show(record, place, showing, markdown, lkml=form == "lkml")
        return
    results = _results(place.store_url, runs, trials=trials, as_json=as_json)
    if results is None:
        return
    if three_sigma:
        results = _by_three_sigma(results, place.store_url)
    _check_metrics(results, metric or [])
    if output is not None:
        load_plugin("reports", form or "")(results, output, language)
        typer.echo(visible_line(str(output)))
        return
    if markdown is not None:
        _write_markdown(results, markdown, metric or [])
    if _is_text(form):
        explaining = _explaining(mechanism, place.store_url) if mechanism else None
        write = plugin_of("share", "texts", form or "")
        typer.echo(write(results, metric or [], explaining, place), nl=False)
        return
    showing.show(results, metrics=metric or ())
    if not as_json and (note := RunNotes(place).of(results.run)):
        typer.echo(f"note {visible(note.rstrip())}")
    if pictures is not None:
        from ajuste.model.wording import count_of
        from ajuste.report.results import results_report

        written = plugin_of("pictures", "pictures", form or _DRAWN[0])(results_report(results), pictures)
        if not as_json:
            typer.echo(f"{count_of(len(written), 'picture')} in {visible(str(pictures))}")


def _check_page(path: Path | None) -> None:
    if path is not None:
        from ajuste.cli.measuring import check_report  # a list of runs needs nothing of it, which loads long

        check_report(path, "--html")


def _beside_runs(place: Home, name: str) -> tuple[Any, Any] | None:
    # What another package keeps beside runs, such as suite-NAME: its module, and what that has by the name.
    kind = name.partition("-")[0]
    if kind not in (*plugins("stored"), "suite"):
        return None
    from ajuste.store.store import Store

    with Store(place.store_url) as store:
        if kind in plugins("stored"):
            module = load_plugin("stored", kind)
            return None if (record := module.find(store, name)) is None else (module, record)
        if store.suites():
            require_extra("ci")
    return None


def _results(url: str, runs: Sequence[str], *, trials: bool, as_json: bool) -> Results | None:
    # None where several runs were compared, or the outputs of trials were shown.
    from ajuste.store.store import Store

    with Store(url) as store:
        if len(runs) > 1:
            _compare([store.find_run(run) for run in runs], store, as_json=as_json)
            return None
        stored = store.find_run(runs[0])
        if trials:
            _trials(store, stored, as_json)
            return None
        # Stored results save the computation, but those of an imported run are somebody else's claim.
        if not stored.imported and (results_json := store.results(stored)) is not None:
            from ajuste.model.facets import stored_results

            with suppress(ValueError):  # Another version of Ajuste may have written them.
                return stored_results(results_json)
        from ajuste.run.outcome import results_of

        return results_of(stored, store)


def _by_three_sigma(results: Results, url: str) -> Results:
    from ajuste.run.outcome import with_three_sigma
    from ajuste.store.store import Store

    with Store(url) as store:
        return with_three_sigma(results, store.find_run(results.run), store)


def _compare(runs: Sequence[Run], store: Store, *, as_json: bool) -> None:
    from ajuste.report.side_by_side import print_side_by_side, side_by_side, side_by_side_document
    from ajuste.run.outcome import results_of

    compared = side_by_side([results_of(run, store) for run in runs])
    if as_json:
        typer.echo(json.dumps(side_by_side_document(compared), indent=2))
    else:
        print_side_by_side(compared)


def _listed(url: str) -> Iterable[Head]:
    from ajuste.store.store import Store

    with Store(url) as store:
        return store.runs()


def _is_text(form: str | None) -> bool:
    return form == "lkml" or form in plugins("texts")


def _check_text(form: str | None, runs: Sequence[str], *, pictures: Path | None, trials: bool, as_json: bool) -> None:
    if not _is_text(form):
        return
    others = {"--pictures": pictures is not None, "--trials": trials, "--json": as_json}
    conflicting = next((name for name, is_given in others.items() if is_given), None)
    if conflicting is not None:
        raise RequestError(f"--format {form} conflicts with {conflicting}", hint="remove one of them")
    if len(runs) != 1:
        raise RequestError(f"--format {form} applies to one run; found {len(runs) or 'none'}", hint="name one RUN")
    if form == "lkml":
        require_extra("share")


def _check_output(form: str | None, output: Path | None, runs: Sequence[str]) -> None:
    # What other packages write to a file.
    if form in (None, *_FORMS, *plugins("texts"), *plugins("pictures")):
        if output is not None:
            raise RequestError("--output requires --format handout", hint="add --format handout")
        return
    known = plugins("reports")
    if form == "handout" and form not in known:
        require_extra("course")
    if form not in known:
        expected = ", ".join(dict.fromkeys((*_FORMS, *plugins("texts"), *plugins("pictures"), *known)))
        raise RequestError(f"--format {visible_line(str(form))}: expected one of {expected}")
    if output is None:
        raise RequestError(f"--format {form} requires --output", hint="add -o FILE.pdf")
    if len(runs) != 1:
        raise RequestError(f"--format {form} applies to one run; found {len(runs) or 'none'}", hint="name one RUN")
    if not output.absolute().parent.is_dir():
        raise RequestError(f"--output {output}: expected a file in an existing directory")


def _check_pictures(form: str | None, pictures: Path | None, mechanism: str | None, *, of_run: bool) -> None:
    if _is_text(form):
        return
    if mechanism is not None:
        raise RequestError("--mechanism requires --format lkml", hint="add --format lkml")
    if form in (*_DRAWN, *plugins("pictures")) and pictures is None and of_run:
        raise RequestError(f"--format {form} requires --pictures", hint="add --pictures DIR")
    if pictures is not None:
        require_extra("pictures")


def _refuse_without_run(options: Mapping[str, object]) -> None:
    option = next((name for name, value in options.items() if value), None)
    if option is not None:
        raise RequestError(f"{option} applies to one run; found none", hint="name one RUN")


def _explaining(mechanism: str, url: str) -> Results | None:
    from ajuste.model.explanation import EXPLANATIONS  # few runs have any

    results = _results(url, [mechanism], trials=False, as_json=False)
    if results is not None and not EXPLANATIONS.of(results):
        raise RequestError(
            f"--mechanism {mechanism}: the run has no recording",
            hint=f"run `ajuste why {mechanism}` first, or name another run",
        )
    return results


def _check_metrics(results: Results, metrics: Sequence[str]) -> None:
    from ajuste.study.problem import nearest

    known = [metric.name for metric in results.metrics]
    for name in metrics:
        if name not in known:
            raise RequestError(
                f"--metric: {visible(name)!r} was not measured{nearest(name, known)}",
                hint=f"give one of {', '.join(map(visible, known))}",
            )


def _write_markdown(results: Results, path: Path, metrics: list[str]) -> None:
    from ajuste.report.markdown import markdown as as_markdown
    from ajuste.report.results import results_report

    try:
        write_text(path, as_markdown(results_report(results, metrics)))
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror or error}", hint="choose a FILE that you can write") from error


def _trials(store: Store, run: Run, as_json: bool) -> None:
    if as_json:
        between = "[\n"
        for trial in store.each_trial(run):
            typer.echo(between + json.dumps(trial.model_dump(mode="json"), indent=2, ensure_ascii=False), nl=False)
            between = ",\n"
        typer.echo("\n]" if between != "[\n" else "[]")
        return
    for trial in store.each_trial(run):
        slot = trial.slot
        typer.echo(f"block {slot.block} position {slot.position} attempt {trial.attempt}: {slot.configuration}")
        typer.echo(f"  {trial.status}{': ' + visible(trial.reason) if trial.reason else ''}")
        for label, text in (("events", trial.events), ("console", trial.console)):
            for line in text.splitlines():
                typer.echo(f"  {label}: {visible(line)}")
