"""Showing results: the HTML report on disk, and on stdout the tables or the document."""

from __future__ import annotations

import hashlib
import os
import pwd
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from ajuste.cli.options import Json, Open, Quiet, Report, Verbose
from ajuste.machine.cache import REPORTS, make_room
from ajuste.machine.home import ajuste_version, home
from ajuste.model.base import BaseModel
from ajuste.model.error import RunError
from ajuste.model.results import Results
from ajuste.model.wording import visible_line
from ajuste.report.console import Console
from ajuste.report.format import ago
from ajuste.report.results import results_report
from ajuste.report.terminal import ONE_SCREEN, print_report
from ajuste.study.command_line.option import option_words

OF_OUTPUT: Final = frozenset(
    [
        "--badge",
        "--dry-run",
        "--force",
        "--fresh",
        "--html",
        "--json",
        "--junit",
        "--ktap",
        "--markdown",
        "--open",
        "--output",
        "--quiet",
        "--report",
        "--save",
        "--tap",
        "--verbose",
        "--wait",
    ]
)
"""Options that do not change what is measured."""

PROGRAM: Final = "xdg-open"
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
_PATIENCE_S: Final = 5.0


@dataclass(frozen=True)
class Showing:
    """The options on output: ``report`` is the file of the HTML report, by default in the reports directory."""

    report: Report = None
    browser: Open = False
    quiet: Quiet = False
    verbose: Verbose = False
    as_json: Json = False

    @property
    def silent(self) -> bool:
        """Return whether to show no progress."""
        return self.quiet or self.as_json

    def show(self, results: Results, *, metrics: Sequence[str] = (), again: str = "") -> None:
        """Print the results, the answer first; then write the report.

        ``metrics`` name the figures to print, by default those of deciding metrics. ``again`` is the time at which
        stored results were measured; empty for new ones.
        """
        report = results_report(results)
        path = self.report or home().reports / f"{results.run}.html"
        if self.as_json:
            typer.echo(results.model_dump_json(indent=2))
        else:
            printed = results_report(results, metrics) if metrics else report
            print_report(printed, Console(file=sys.stdout), verbose=self.verbose, path=path, most_lines=ONE_SCREEN)
            if again:
                print(f"Measured {ago(again)}; --fresh measures again.")
        sys.stdout.flush()
        from ajuste.report.html import write_report  # not before the answer is shown

        try:
            write_report(report, path, contents_of(results))
        except OSError as failure:
            raise RunError(
                f"the report was not written: {path}: {failure.strerror or failure}",
                hint="name a file that you can write",
            ) from failure
        if path.parent == (place := home()).reports:
            make_room(REPORTS, place)
        if self.browser:
            open_report(path)


def contents_of(document: BaseModel) -> str:
    """Return a hash that changes whenever the page of ``document`` would: of its data and this version of Ajuste."""
    return hashlib.sha256(f"{ajuste_version()} {document.model_dump_json()}".encode()).hexdigest()


# The command line, as reports quote it.


def command_line(context: typer.Context) -> str:
    """Return the request of a command as one line for a shell, without options that do not change what is measured."""
    arguments: list[str] = []
    options: list[str] = []
    command: list[str] = []
    parameters = {parameter.name: parameter for parameter in context.command.params}
    for key, value in context.params.items():  # in the order in which they were given
        source = context.get_parameter_source(key)
        if source is None or source.name != "COMMANDLINE":
            continue
        parameter = parameters[key]
        if parameter.param_type_name == "option":
            name = (parameter.secondary_opts if value is False else parameter.opts)[0]
            if name not in OF_OUTPUT:
                options += option_words(name, value is False or value)
            continue
        words = [str(word) for word in (value if isinstance(value, (tuple, list)) else (value,))]
        if str(parameter.metavar).startswith("COMMAND") or any(word.startswith("-") for word in words):
            command += ["--", *words]
        else:
            arguments += words
    return shlex.join(["ajuste", *context.command_path.split()[1:], *arguments, *options, *command])


# ``--open``: show a report in the caller's browser.


def open_report(
    path: Path, environment: Mapping[str, str] = os.environ, run: Callable[..., Any] = subprocess.run
) -> None:
    """Open ``path`` in the browser of the user who called Ajuste, or print to standard error why that fails."""
    if problem := _problem(path, environment, run):
        typer.echo(visible_line(f"cannot open a browser: {problem}; the report is {path}"), err=True)


def _problem(path: Path, environment: Mapping[str, str], run: Callable[..., Any]) -> str:
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    if program is None:
        return f"{PROGRAM} not found (package xdg-utils)"
    if not any(environment.get(name) for name in _DISPLAYS):
        return "this session has no display"
    changes: dict[str, Any] = {}
    from ajuste.executor.host.caller import invoking_user  # few open a browser

    if (user := invoking_user(environment)) is not None:
        changes = {"user": user.uid, "group": user.gid, "extra_groups": user.groups}
        environment = _of_user(user.uid, environment)
    try:
        done = run(
            [program, path.absolute()],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            timeout=_PATIENCE_S,
            check=False,
            **changes,
        )
    except subprocess.TimeoutExpired:
        return ""  # Without a desktop xdg-open becomes the browser itself, which goes on.
    except OSError as failure:
        return f"{program}: {failure.strerror}"
    return f"{PROGRAM} failed with exit code {done.returncode}" if done.returncode else ""


def _of_user(uid: int, environment: Mapping[str, str]) -> dict[str, str]:
    # Under sudo, HOME and the session bus are root's: the browser would not find the user's running one.
    runtime = f"/run/user/{uid}"
    return {name: value for name, value in environment.items() if not name.startswith("SUDO_")} | {
        "HOME": pwd.getpwuid(uid).pw_dir,
        "XDG_RUNTIME_DIR": runtime,
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
    }
