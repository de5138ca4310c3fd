"""``ajuste bundle`` and ``ajuste import``: runs as one file, for another store, and into it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.listing import size_text
from ajuste.cli.options import Json, example
from ajuste.machine.home import home
from ajuste.model.wording import count_of, visible_line

BundleFile = Annotated[Path, typer.Argument(metavar="FILE", help="A bundle: FILE.ajuste.", show_default=False)]


@example("ajuste import runs.ajuste")
def import_(file: BundleFile, as_json: Json = False) -> None:
    """Take the runs of a bundle into the store, all or none; they keep their ids.

    A run that the store has already stays. ajuste run never uses an imported run instead of measuring.
    """
    from ajuste.run.sharing import import_bundle
    from ajuste.store.store import Store

    with Store(home().store_url) as store:
        found = import_bundle(file, store)
    if as_json:
        typer.echo(json.dumps({"file": str(file), "runs": [asdict(one) for one in found]}, indent=2))
        return
    for one in found:
        what = f"{one.id}  {visible_line(one.study)}  {count_of(one.trials, 'trial')}"
        typer.echo(f"{what}: {'imported' if one.new else 'in the store already'}")
        if one.new and one.said_anew:
            typer.echo(
                "  The bundle's results do not follow from its trials with this Ajuste; they were computed again."
            )
    if any(one.new for one in found):
        typer.echo(f"Show it with ajuste report {next(one.id for one in found if one.new)}")


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
