"""What help and completion need to know of the command line and the catalogue, without loading them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import typer.main
from typer.testing import CliRunner

from ajuste.catalogue.loader import catalogue
from ajuste.cli.main import HELP_WIDTH, application, whole_application
from ajuste.kernel.source import kernel_sources
from ajuste.study.builtin import builtin_studies
from writing.generated import ROOT, commands_of

KNOWN: Final = ROOT / "src" / "ajuste" / "cli" / "completion.json"
HELP: Final = KNOWN.with_name("help.json")
_MARGIN: Final = 2
"""Columns that the help of a command leaves free on a terminal."""


def pages() -> dict[Path, str]:
    """The file as it must be."""
    group: Any = typer.main.get_command(whole_application())
    commands = {
        " ".join(path): {
            "help": _first_sentence(one.help),
            "group": hasattr(one, "commands"),
            "parameters": [_parameter(each) for each in one.params],
        }
        for path, one in [((), group), *commands_of(group)]
    }
    document = {"commands": commands, "values": _values()}
    helps = {" ".join(path): _help(path) for path, _ in commands_of(group)}
    return {
        KNOWN: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        HELP: json.dumps(helps, indent=1, ensure_ascii=False) + "\n",
    }


def _help(path: Sequence[str]) -> str:
    """What a command prints itself, for a terminal that is wide enough."""
    words = [*path, "--help"]
    done = CliRunner().invoke(application(words), words, prog_name="ajuste", terminal_width=HELP_WIDTH - _MARGIN)
    return done.output


def _parameter(one: Any) -> dict[str, Any]:
    annotation = one.type_descriptor.annotation
    return {
        "names": ["/".join((*one.opts[:1], *one.secondary_opts)), *one.opts[1:]],
        "kind": "flag" if getattr(one, "is_flag", False) else one.param_type_name,
        "metavar": one.metavar or one.name.upper(),
        "help": _first_sentence(getattr(one, "help", "") or ""),
        "number": -1 if getattr(one, "multiple", False) else one.nargs,
        "choices": list(get_args(annotation)) if get_origin(annotation) is Literal else [],
    }


def _values() -> dict[str, dict[str, str]]:
    """What the program brings with it, with a few words on each."""
    known = catalogue()
    return {
        "tunables": {name: _first_sentence(one.what) for name, one in known.tunables.items()},
        "workloads": {name: _first_sentence(one.what) for name, one in known.workloads.items()},
        "studies": {one.name: one.title for one in builtin_studies()},
        "kernels": {
            f"{source.name}:{series.name}": series.scheduler
            for source in kernel_sources().values()
            for series in source.series
            if " " not in series.name  # "6.19 and later" is nothing to type
        },
    }


def _first_sentence(text: str) -> str:
    return " ".join(text.replace("\b", "").split("\n\n")[0].split()).split(". ")[0].rstrip(".")
