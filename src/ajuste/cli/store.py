"""``ajuste store``: whether what is kept is intact, and what to do where it is not."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.options import Json, example, examples
from ajuste.machine.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import visible_line
from ajuste.report.format import count_of
from ajuste.store.engine import shown
from ajuste.store.salvage import inspect_store
from ajuste.store.salvage import salvage as salvage_store

app = typer.Typer(
    help=examples(
        "Check the store of all runs, or salvage a damaged one.",
        "ajuste store check",
        "ajuste store salvage -o salvaged.sqlite",
    ),
    no_args_is_help=True,
)


@app.command()
@example("ajuste store check", "ajuste store check --json")
def check(as_json: Json = False) -> None:
    """Verify the store's file and every checksum and count. Exit code 1 if anything is damaged."""
    url = home().store_url
    found = inspect_store(url)
    if as_json:
        typer.echo(json.dumps({"store": shown(url), "intact": not found.damaged, **asdict(found)}, indent=2))
    else:
        whole = f"{count_of(found.runs, 'run')} and {count_of(found.trials, 'trial')}"
        typer.echo(f"{whole} in {shown(url)} are intact." if not found.damaged else f"{whole} are intact. Damaged:")
        for line in found.damaged:
            typer.echo(f"  {visible_line(line)}")
        if found.unverified_before:
            count = count_of(len(found.unverified_before), "run")
            typer.echo(f"{count} are older than checksums; damage before the upgrade goes unnoticed.")
    if found.damaged:
        raise RunError(
            f"the store {shown(url)} is damaged", hint="run ajuste store salvage -o FILE to save all that is intact"
        )


@app.command()
@example("ajuste store salvage -o salvaged.sqlite")
def salvage(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The new store, an SQLite file.")],
    as_json: Json = False,
) -> None:
    """Copy all that is intact in a damaged store to a new one, and list what is lost.

    The damaged store is not changed. To measure lost trials again, run the run's command again.
    """
    if not output.absolute().parent.is_dir():
        raise RequestError(f"--output {output}: expected a file in an existing directory")
    done = salvage_store(home().store_url, output)
    if as_json:
        typer.echo(json.dumps({"store": str(output), **asdict(done)}, indent=2))
        return
    typer.echo(f"{count_of(done.runs, 'run')} and {count_of(done.trials, 'trial')} are in {visible_line(str(output))}.")
    for line in done.lost:
        typer.echo(f"lost: {visible_line(line)}")
    typer.echo("Set AJUSTE_STORE to it, or replace the old store with it.")
