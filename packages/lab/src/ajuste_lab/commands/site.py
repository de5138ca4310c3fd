"""``ajuste site``: the reports of many runs as a static site."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.cli.options import Json, example
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.model.wording import count_of, visible_line

if TYPE_CHECKING:
    from ajuste.report.document import Report
    from ajuste.store.head import Head
    from ajuste.store.store import Store
    from ajuste_lab.site import SiteEntry


@example("ajuste site public")
def site(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new directory, or one that ajuste site wrote.", show_default=False)
    ],
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Only these runs (default: all that ended).", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a static site: a list of runs with search, and the report of each.

    It needs no server, and opens from disk. The same runs give the same bytes.
    """
    from ajuste.store.store import Store
    from ajuste_lab.site import INDEX, StaticSite

    place = StaticSite(directory)
    with Store(home().store_url) as store:
        wanted = _wanted(runs or (), store)
        entries = [_entry(run, store) for run in wanted]
        done = place.write(entries, _reports(wanted, store))
        left_out = 0 if runs else len(store.runs()) - len(wanted)
    if as_json:
        document = {
            "directory": str(directory),
            "runs": [entry.run for entry in entries],
            "removed": list(done.removed),
        }
        typer.echo(json.dumps(document, indent=2))
        return
    typer.echo(f"The site has {count_of(done.runs, 'run')}: {visible_line(str(directory / INDEX))}")
    if left_out:
        typer.echo(f"{count_of(left_out, 'unfinished run')} left out.")


def _wanted(names: Sequence[str], store: Store) -> list[Head]:
    # Newest first by the start time.
    chosen = {store.find_run(name).id for name in names}
    selected = [run for run in store.runs() if (run.id in chosen if names else run.stopped)]
    for run in selected:
        if not run.stopped:
            raise RequestError(f"run {run.id} is not finished", hint="finish it with its own command")
    if not selected:
        raise RequestError("there are no runs that ended", hint="run a study first, such as ajuste run granularity")
    return sorted(selected, key=lambda run: (run.created, run.id), reverse=True)


def _entry(run: Head, store: Store) -> SiteEntry:
    from ajuste.cli.showing import contents_of
    from ajuste.run.outcome import results_of
    from ajuste_lab.site import SiteEntry

    results = results_of(store.find_run(run.id), store)
    return SiteEntry(
        run=run.id,
        study=run.study,
        title=results.title,
        answer=results.answer or results.stopped_because,
        created=run.created,
        kernel=run.kernel,
        workload=run.workload,
        tags=tuple(run.tags.split()),
        contents=contents_of(results),
    )


def _reports(runs: Sequence[Head], store: Store) -> Iterator[Report]:
    from ajuste.report.results import results_report
    from ajuste.run.outcome import results_of

    for run in runs:
        yield results_report(results_of(store.find_run(run.id), store))
