"""The command line as data, and its help for a terminal of any width.

``command-line.json`` has every command with its options, and the catalogue's names (``python -m writing``): help and
completion load no command.
"""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from ajuste.cli.edge import Interrupted
from ajuste.cli.options import PROMPT, F
from ajuste.model.plugins import plugins
from ajuste.study.command_line.option import RARE_PANELS, panel_order

FILE: Final = Path(__file__).with_name("command-line.json")
HELP_ALL: Final = "--help-all"

FEW_OPTIONS: Final = 12
"""Maximum number of options that are shown in one group."""
MANY_OPTIONS: Final = 24
"""Maximum number of options in ``--help``; a command with more shows its rare ones with ``--help-all`` only."""

_WIDEST: Final = 78
_NARROWEST: Final = 20
_NAME_COLUMN: Final = 30
# With fewer columns beside the names, the text goes below them.
_TEXT_COLUMN: Final = 22
_WORD: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")

Row = tuple[str, str]


@cache
def known_commands() -> dict[str, Any]:
    """Return the content of ``command-line.json``."""
    document: dict[str, Any] = json.loads(FILE.read_bytes())
    return document


def help_text(path: Sequence[str], *, everything: bool = False, columns: int | None = None) -> str:
    """Return the help of the command that ``path`` names; empty where there is none."""
    commands = known_commands()["commands"]
    name = " ".join(path)
    if (command := commands.get(name)) is None:
        return ""
    width = max(min((columns or shutil.get_terminal_size().columns) - 2, _WIDEST), _NARROWEST)
    parts = [_filled(f"Usage: {command['usage']}", width, "", "  "), *_paragraphs(command["help"], width)]
    if command["examples"]:
        title = "Examples" if command["examples"][1:] else "Example"
        parts.append("\n".join([f"  {title}:", *(_example(line, width) for line in command["examples"])]))
    for title, rows in _sections(name, command, commands, everything=everything):
        parts.append("\n".join([f"{title}:", *_table(rows, width)]))
    return "\n\n".join(parts) + "\n"


def _sections(
    name: str, command: dict[str, Any], commands: dict[str, Any], *, everything: bool
) -> Iterator[tuple[str, list[Row]]]:
    arguments = [parameter for parameter in command["parameters"] if parameter["kind"] == "argument"]
    options = [parameter for parameter in command["parameters"] if parameter["kind"] != "argument"]
    if arguments:
        yield "Arguments", [(each["what"], each["help"]) for each in arguments]
    rare = [option for option in options if option["panel"] in RARE_PANELS]
    hidden = [] if everything or len(options) <= MANY_OPTIONS else rare
    panels: dict[str, list[Row]] = {}
    for option in sorted(options, key=lambda option: panel_order(option["panel"])):
        if option not in hidden:
            panel = "Options" if len(options) <= FEW_OPTIONS else option["panel"] or "Options"
            panels.setdefault(panel, []).append((option["what"], option["help"]))
    helps = [("--help", "Show this help.")]
    if hidden:
        helps.append((HELP_ALL, f"Also show {len(hidden)} rarely used options."))
    panels.setdefault("Options" if len(options) <= FEW_OPTIONS else "Help", []).extend(helps)
    yield from panels.items()
    below = {path: inner for path, inner in commands.items() if path and path.rpartition(" ")[0] == name}
    groups: dict[str, list[Row]] = {}
    for path, inner in below.items():
        groups.setdefault(inner["panel"] or "Commands", []).append((path.rpartition(" ")[2], inner["summary"]))
    if not name:
        for plugin in plugins("commands").values():
            if plugin.name not in commands:
                groups.setdefault("Other packages", []).append((plugin.name, f"From {plugin.package}."))
    yield from groups.items()


def _paragraphs(text: str, width: int) -> list[str]:
    # The paragraphs of a docstring; those that begin with `\b` keep their lines.
    return [
        textwrap.indent(part.removeprefix("\b\n"), "  ")
        if part.startswith("\b")
        else _filled(" ".join(part.split()), width, "  ", "  ")
        for part in text.split("\n\n")
        if part.strip()
    ]


def _example(command: str, width: int) -> str:
    # A command that can be copied, also where it takes several lines.
    lines = [f"    {PROMPT}"]
    for word in _WORD.findall(command):
        if len(lines[-1]) + len(word) + 2 > width and lines[-1].strip() != PROMPT.strip():
            lines[-1] += "\\"
            lines.append("        ")
        lines[-1] += f"{word} "
    return "\n".join(line.rstrip() for line in lines)


def _table(rows: Iterable[Row], width: int) -> Iterator[str]:
    rows = list(rows)
    longest = min(max(len(what) for what, _ in rows), _NAME_COLUMN)
    column = longest + 4
    if width - column < _TEXT_COLUMN:
        for what, text in rows:
            yield _filled(what, width, "  ", "    ")
            yield _filled(text, width, "      ", "      ")
        return
    for what, text in rows:
        lines = _filled(text, width, " " * column, " " * column)
        if len(what) > longest:
            yield _filled(what, width, "  ", "    ")
            yield lines
        else:
            yield f"  {what:<{longest}}  {lines[column:]}".rstrip()


def _filled(text: str, width: int, first: str, later: str) -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _write_help(context: Any, formatter: Any) -> bool:
    path = context.command_path.split()[1:]
    text = help_text(path, everything=bool(context.find_root().obj))
    formatter.write(text)
    return bool(text)


class _Command(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        if not _write_help(ctx, formatter):
            super().format_help(ctx, formatter)  # a new kind of experiment


class _Group(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:  # Typer would forget its notes.
            raise Interrupted from stop


class Commands(typer.Typer):
    """A group of commands with the help of ``command-line.json``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, add_completion=False, rich_markup_mode=None, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        return super().command(name, cls=_Command, **options)
