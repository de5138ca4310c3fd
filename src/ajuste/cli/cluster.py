"""``ajuste cluster``: the keys of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.options import example, examples
from ajuste.machine.home import home

app = typer.Typer(
    help=examples("Make the keys of a cluster.", "ajuste cluster keys"),
    no_args_is_help=True,
)


@app.callback()
def _group() -> None: ...


@app.command()
@example("ajuste cluster keys", "ajuste cluster keys lab-keys")
def keys(
    directory: Annotated[
        Path | None,
        typer.Argument(help="Output directory (default: cluster-keys in the data directory).", show_default=False),
    ] = None,
) -> None:
    """Make keys for a scheduler, its workers and its coordinators, one file each.

    Give every machine authority.pem and the file of what it is, and no other: a worker's key gives no orders.
    """
    from ajuste.executor.cluster.keys import make_keys

    for path in make_keys(directory or home().cluster_keys):
        typer.echo(path)
