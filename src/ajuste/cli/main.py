"""The command ``ajuste``: one file a command, and those of other packages, put together here."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, NoReturn

import typer

from ajuste.cli.command_line import HELP_ALL, Commands, help_text
from ajuste.cli.edge import QuickEnding, exit_code
from ajuste.cli.log import OPTION, begin_log, without_log
from ajuste.cli.options import examples, help_if_alone
from ajuste.machine.home import plugin_of
from ajuste.model.error import RequestError
from ajuste.model.plugins import load_plugin, plugins, problems

GROUPS: Final = MappingProxyType(
    {
        "Ask": {
            "compare": "Measure a command, or compare commands or settings.",
            "run": "Run a study to a verdict and a report.",
            "plan": "Show every write, command and trial, and do nothing.",
            "studies": "List the built-in studies, or print one.",
            "tune": "Find a good configuration in few trials.",
            "ablate": "Find which lines of a profile matter for a command.",
            "suite": "Measure several workloads as one experiment.",
        },
        "Understand": {
            "report": "List runs, show one, or compare several.",
            "why": "Explain why a configuration differs from the baseline.",
            "analyse": "Give verdicts on results measured elsewhere.",
            "serve": "Open the lab page: see, compare and start runs.",
            "export": "Write the winner as a profile, a file or a script.",
            "transfer": "Compare the answers of a guest with those of the host.",
            "help": "Show a page of the manual.",
        },
        "Service": {
            "live": "Compare settings under the real load of a running service.",
            "restore": "Restore what an experiment left changed.",
            "reboots": "Show the experiment that goes on across reboots.",
        },
        "Class": {
            "course": "Exercise sheets with figures of each student's own, and marks.",
        },
        "CI": {
            "gate": "Check whether a revision is slower than another, for CI.",
            "history": "Show every metric over commits, and where it changed.",
        },
        "Machine": {
            "doctor": "Check how quiet this machine is, and what to do.",
            "inventory": "Show what this machine is.",
            "tunables": "List the settings that Ajuste knows, or explain one.",
            "kernel": "List, fetch, build, prove and compare kernels.",
        },
        "Share": {
            "reproduce": "Write a run as a regression test: a study file that says what must come out.",
            "bundle": "Put runs into one file, to share them.",
            "import": "Take the runs of a bundle into the store.",
            "verify": "Measure a run again, and compare the digests.",
            "site": "Write reports of many runs as a static site.",
        },
        "Maintain": {
            "store": "Check, back up, clean up or salvage the store of all runs.",
            "cache": "Show or clear the caches.",
            "schema": "Print the JSON Schema of study files, for editors.",
            "completion": "Print the completion script of a shell.",
        },
        "Agents and clusters": {
            "mcp": "Serve agents by the Model Context Protocol.",
            "campaign": "Judge many proposals of people or agents, without false winners.",
            "cluster": "Run trials on other machines: worker, scheduler, keys.",
        },
    }
)
"""The commands with their summaries, in the groups of the help.

Each is a module of this package, with a function of that name or a group ``app``, or in one of ``ELSEWHERE``.
"""

ELSEWHERE: Final = MappingProxyType(
    {
        "ablate": "search",
        "analyse": "analyse",
        "bundle": "share",
        "campaign": "serve",
        "cluster": "cluster",
        "course": "course",
        "doctor": "doctor",
        "export": "profiles",
        "gate": "ci",
        "history": "ci",
        "import": "share",
        "inventory": "doctor",
        "kernel": "kernels",
        "live": "live",
        "mcp": "mcp",
        "reboots": "boots",
        "reproduce": "ci",
        "serve": "serve",
        "site": "serve",
        "suite": "ci",
        "transfer": "guest",
        "tune": "search",
        "verify": "share",
        "why": "guest",
    }
)
"""The commands of Ajuste's other packages, with the optional part that each belongs to."""

COMMANDS: Final = MappingProxyType({name: what for group in GROUPS.values() for name, what in group.items()})

OLD_NAMES: Final = MappingProxyType({"worker": ("cluster", "worker"), "scheduler": ("cluster", "scheduler")})
"""Commands that became part of others; their names go on working."""

# Modules that have several commands.
_MODULES: Final = {
    "schema": "studies",
}
_FUNCTIONS: Final = {"help": "show_page"}


def application(words: Sequence[str] = ()) -> typer.Typer:
    """Return the application with the command that ``words`` name; without one, with all names and no code.

    Only the module of that command is loaded, so that it starts quickly.
    """
    before = list(words[: words.index("--")] if "--" in words else words)
    app = Commands(
        name="ajuste",
        help=examples(
            "An experiment lab for Linux configuration: from a question to a verdict you can believe.",
            "ajuste studies",
            "ajuste run granularity",
        ),
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", HELP_ALL], "obj": {"everything": True}}
        if HELP_ALL in before
        else {},
    )
    app.callback(invoke_without_command=True)(_options)
    named = next((word for word in without_log(words) if word in COMMANDS or word in plugins("commands")), None)
    if named is not None:
        _add(app, named)
    else:
        for name, summary in COMMANDS.items():  # nothing is loaded to list them
            app.command(name, help=summary)(_nothing)
    return app


def whole_application() -> typer.Typer:
    """Return the application with all commands loaded that are installed, for pages about it."""
    app = application(["run"])
    for name in COMMANDS:
        if name != "run" and (name not in ELSEWHERE or name in plugins("commands")):
            _add(app, name)
    return app


def _add(app: typer.Typer, name: str) -> None:
    command = _command(name)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name)(command)


def _command(name: str) -> Any:
    # A function, or a group of commands.
    if name in ELSEWHERE:
        return plugin_of(ELSEWHERE[name], "commands", name)
    if name not in COMMANDS:
        return load_plugin("commands", name)
    module = import_module(f"ajuste.cli.{_MODULES.get(name, name)}")
    if hasattr(module, "app") and name not in _MODULES:
        return module.app
    return getattr(module, _FUNCTIONS.get(name, name))


def _nothing() -> None: ...


def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --version: all facts for a bug report.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: as one JSON document.")] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            OPTION, metavar="FILE", help="Append what the command does to FILE, as JSON lines.", show_default=False
        ),
    ] = None,
) -> None:
    gc.freeze()  # by now the command is loaded; from here on there may be garbage
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    if version:
        from ajuste.cli.version import show_version

        show_version(verbose=verbose, as_json=as_json)
        raise typer.Exit
    if verbose or as_json:
        option = "--verbose" if verbose else "--json"
        raise RequestError(f"{option} before a command requires --version", hint=f"write {option} after the command")
    help_if_alone(context)
    if log is not None:
        begin_log(log)


def main() -> NoReturn:
    """Run the command line; the entry point of the program."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # to look for some takes as long as to build a model
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller, such as by >&-
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends
    gc.disable()  # what is loaded stays: looking for garbage in it costs a fifth of a short command
    if "_AJUSTE_COMPLETE" in os.environ:
        from ajuste.cli.completion import answer

        answer()
    ending = QuickEnding()
    ending.leave(exit_code(lambda: _done(sys.argv[1:])))


def _done(words: list[str]) -> object:
    words = current_names(words)
    if (
        words
        and words[-1] in ("--help", HELP_ALL)
        and (text := help_text(words[:-1], everything=words[-1] == HELP_ALL))
    ):
        print(text, end="")
        return 0
    try:
        return application(words)(words, prog_name="ajuste", standalone_mode=False)
    finally:
        for problem in problems():
            print(f"ajuste: {problem}", file=sys.stderr)


def current_names(words: Sequence[str]) -> list[str]:
    """Return ``words`` with the current name of a command that was renamed."""
    command = without_log(words)
    options = list(words[: len(words) - len(command)])
    return [*options, *OLD_NAMES.get(command[0], command[:1]), *command[1:]] if command else options
