"""``ajuste bundle``: runs as one file, for another store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.listing import size_text
from ajuste.cli.options import Json, example
from ajuste.machine.home import home
from ajuste.model.wording import count_of, visible_line


@example("ajuste bundle nice -o runs.ajuste")
def bundle(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs, or studies (their newest runs).", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The bundle, a new file: FILE.ajuste.")
    ],
    as_json: Json = False,
) -> None:
    """Put runs that ended into one file: study, machine, trials with all they printed, recordings, results.

    Another store takes it with ajuste import. Read what programs printed before you share it.
    """
    from ajuste.run.sharing import to_bundle
    from ajuste.store.bundle import write_bundle
    from ajuste.store.store import Store

    with Store(home().store_url) as store:
        found = to_bundle(runs, store)
        write_bundle(output, found, len(found))
        trials = sum(store.count(one.run) for one in found)
    size = output.stat().st_size
    if as_json:
        names = [one.run.id for one in found]
        typer.echo(json.dumps({"file": str(output), "runs": names, "trials": trials, "size_bytes": size}, indent=2))
        return
    whole = f"{count_of(len(found), 'run')} and {count_of(trials, 'trial')}"
    typer.echo(f"{whole} are in {visible_line(str(output))} ({size_text(size)}).")
