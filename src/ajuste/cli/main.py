"""The command ``ajuste``: one file a command, put together here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from ajuste.cli.edge import QuickEnding, exit_code
from ajuste.cli.log import OPTION, begin_log, without_log
from ajuste.cli.options import examples
from ajuste.machine.home import ajuste_version

COMMANDS: Final = (
    "run",
    "compare",
    "ablate",
    "tune",
    "plan",
    "report",
    "store",
    "why",
    "analyse",
    "export",
    "studies",
    "tunables",
    "inventory",
    "doctor",
    "restore",
    "kernel",
    "cache",
    "worker",
    "scheduler",
    "cluster",
    "schema",
)
"""In the order of the help. Each is a module of this package: a function of that name, or a group ``app``."""

_MODULES: Final = {"worker": "cluster", "scheduler": "cluster"}
"""Of the commands that share one."""


def application(words: Sequence[str] = ()) -> typer.Typer:
    """The whole command line, or only what the first of ``words`` is about: the other commands need not be loaded."""
    app = typer.Typer(
        name="ajuste",
        help=examples(
            "An experiment lab for Linux configuration: from a question to a verdict you can believe.",
            "ajuste studies",
            "ajuste run granularity",
        ),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name in _commands_for(words):
        module = import_module(f"ajuste.cli.{_MODULES.get(name, name)}")
        if hasattr(module, "app") and name not in _MODULES:
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def _commands_for(words: Sequence[str]) -> Sequence[str]:
    words = without_log(words)
    if words and words[0] in COMMANDS:
        return words[:1]
    return () if words and words[0] == "--version" else COMMANDS


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ajuste {ajuste_version()}")
        raise typer.Exit


def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            OPTION, metavar="FILE", help="Append what the command does to FILE, as JSON lines.", show_default=False
        ),
    ] = None,
) -> None:
    if log is not None:
        begin_log(log)


def main() -> NoReturn:
    """The entry point of the command line."""
    ending = QuickEnding()
    ending.leave(exit_code(lambda: application(sys.argv[1:])(standalone_mode=False)))
