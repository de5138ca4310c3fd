"""``command-line.json``: what help and completion need to know of the command line, without loading it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer.main

from ajuste.catalogue.loader import catalogue
from ajuste.cli.command_line import FILE
from ajuste.cli.main import COMMANDS, GROUPS, whole_application
from ajuste.cli.options import examples_in, first_sentence
from ajuste.kernel.spec import kernel_sources
from ajuste.study.builtin import builtin_studies

_METAVARS: Final = {"int": "N", "float": "NUMBER", "path": "FILE", "file": "FILE"}
"""Placeholder of a value whose option names none, by its type."""


def pages() -> dict[Path, str]:
    """Return the file as it must be."""
    group: Any = typer.main.get_command(whole_application())
    panels = {name: panel for panel, names in GROUPS.items() for name in names}
    commands = {
        " ".join(path): {
            "summary": COMMANDS.get(" ".join(path)) or f"{first_sentence(command.help)}.",
            "usage": usage(path, command),
            "help": described(command),
            "examples": examples_in(command.help),
            "panel": panels.get(" ".join(path), ""),
            "group": hasattr(command, "commands"),
            "parameters": [_parameter(each) for each in command.params if not each.hidden],
        }
        for path, command in [((), group), *commands_of(group)]
    }
    document = {"commands": commands, "values": _values()}
    return {FILE: json.dumps(document, indent=1, ensure_ascii=False) + "\n"}


def commands_of(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands and groups with the words that call them, in the order of the help."""
    order = COMMANDS if not path else tuple(group.commands)
    for name in order:
        command = group.commands[name]
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from commands_of(command, (*path, name))


def described(command: Any) -> str:
    """Return the help of a command without its examples."""
    return str(command.help).partition("\n\n\b\n")[0]


def usage(path: tuple[str, ...], command: Any) -> str:
    """Return the line that shows how a command is called."""
    words = ["ajuste", *path, "[OPTIONS]"]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = _metavar(parameter)
            name = f"{name}..." if parameter.nargs != 1 and name.isalpha() else name
            words.append(name if parameter.required or name.startswith("[") else f"[{name}]")
    return " ".join([*words, "COMMAND ..."] if hasattr(command, "commands") else words)


def record(parameter: Any) -> tuple[str, str]:
    """Return an option or argument as it is typed, and what it does."""
    if parameter.param_type_name == "argument":
        return _metavar(parameter), _meaning(parameter)
    names = ", ".join(parameter.opts) + "".join(f" / {name}" for name in parameter.secondary_opts)
    return names if parameter.is_flag else f"{names} {_metavar(parameter)}", _meaning(parameter)


def _metavar(parameter: Any) -> str:
    kind = parameter.type_descriptor
    if parameter.metavar:
        return str(parameter.metavar)
    if kind.choices:
        return "|".join(map(str, kind.choices))
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper().replace("_", "-")
    type_name = kind.path_type if kind.is_path else getattr(kind.annotation, "__name__", "")
    return _METAVARS.get(type_name, str(parameter.name).upper().replace("_", "-"))


def _meaning(parameter: Any) -> str:
    """Return what a parameter does, with its default and its limits where the text does not have them."""
    text = " ".join((parameter.help or "").split())
    limits = _limits(parameter.min, parameter.max)
    has_default = parameter.show_default and not parameter.required and parameter.default not in (None, False, "", ())
    default = _default(parameter) if has_default and "default" not in text else ""
    more = "; ".join(part for part in (f"default: {default}" if default else "", limits) if part)
    return f"{text.removesuffix('.')} ({more})." if more and text else text


def _default(parameter: Any) -> str:
    if parameter.secondary_opts:
        return str(parameter.opts[0] if parameter.default else parameter.secondary_opts[0])
    return str(parameter.default)


def _limits(least: float | None, most: float | None) -> str:
    if least not in (None, 0, 1) and most is None:
        return f"at least {least}"
    return f"{least or 0} to {most}" if most is not None else ""


def _parameter(parameter: Any) -> dict[str, Any]:
    what, text = record(parameter)
    choices = parameter.type_descriptor.choices
    return {
        "names": ["/".join((*parameter.opts[:1], *parameter.secondary_opts)), *parameter.opts[1:]],
        "kind": "flag" if getattr(parameter, "is_flag", False) else parameter.param_type_name,
        "metavar": parameter.metavar or parameter.name.upper(),
        "what": what,
        "help": text,
        "panel": parameter.rich_help_panel or "",
        "number": -1 if getattr(parameter, "multiple", False) else parameter.nargs,
        "choices": list(choices) if choices else [],
    }


def _values() -> dict[str, dict[str, str]]:
    """Return what the program brings with it, with a few words on each."""
    known = catalogue()
    return {
        "tunables": {name: first_sentence(tunable.what) for name, tunable in known.tunables.items()},
        "workloads": {name: first_sentence(workload.what) for name, workload in known.workloads.items()},
        "studies": {study.name: study.title for study in builtin_studies()},
        "kernels": {
            f"{source.name}:{series.name}": series.scheduler
            for source in kernel_sources().values()
            for series in source.series
            if " " not in series.name  # "6.19 and later" is nothing to type
        },
    }
