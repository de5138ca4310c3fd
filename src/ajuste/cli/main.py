"""The command ``ajuste``: one file a command, put together here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ajuste.cli import kernel, tunables
from ajuste.cli.edge import exit_code
from ajuste.cli.plan import plan
from ajuste.cli.report import report
from ajuste.cli.run import run
from ajuste.cli.schema import schema
from ajuste.cli.studies import studies
from ajuste.version import ajuste_version

app = typer.Typer(
    name="ajuste",
    help="An experiment lab for Linux configuration: from a question to a verdict you can believe.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (run, plan, report, studies, schema):
    app.command()(command)
app.add_typer(tunables.app, name="tunables")
app.add_typer(kernel.app, name="kernel")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ajuste {ajuste_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def main() -> None:
    """The entry point of the command line."""
    sys.exit(exit_code(lambda: app(standalone_mode=False)))
