"""Commands on a command line: programs, or workloads of the catalogue by their names.

A word that names a workload of the catalogue, alone or followed by its parameters as ``NAME=VALUE``, is that workload;
anything else is a program with its arguments. The program of that name is run when it is given with a path.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, get_args

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError
from ajuste.study.command_line.request import wrong
from ajuste_stats.terms import Direction

# Most characters of a command in the name of a configuration.
LONGEST: Final = 48

_PARAMETER: Final = re.compile(r"[a-z][a-z0-9_]*=.*", re.DOTALL)

OPTION: Final = "--metric"
_DEFINITION: Final = re.compile(r"(.*?)=(regex|json):(.*)", re.DOTALL)
_FIELD: Final = {"regex": "pattern", "json": "pointer"}

_EXAMPLE: Final = (
    "for example --metric 'copy-time,s,lower=regex:copied in ([0-9.]+) s' or iops,higher=json:/jobs/0/iops"
)

_WORDS: Final[dict[str, tuple[str, str]]] = {
    **{word: ("direction", word) for word in get_args(Direction)},
    "stderr": ("stream", "stderr"),
    "stdout": ("stream", "stdout"),
    "difference": ("scale", "difference"),
    "ratio": ("scale", "ratio"),
}


def job(words: Sequence[str], catalogue: Catalogue) -> dict[str, Any]:
    """Return ``kind`` and ``parameters``, or ``command``: as the tables of a study have it."""
    name, *rest = words
    if name in catalogue.workloads and all(_PARAMETER.fullmatch(word) for word in rest):
        parameters = dict(word.split("=", 1) for word in rest)
        return {"kind": name, "parameters": parameters} if parameters else {"kind": name}
    return {"command": argv(words)}


def argv(words: Sequence[str]) -> list[str]:
    """Return ``words`` as a study has them: programs outside the caller's directory by their whole path."""
    program = words[0]
    if "/" in program and ".." in PurePosixPath(program).parts:
        program = str(Path(program).absolute().resolve())
    return [program, *words[1:]]


def split(option: str, text: str) -> list[str]:
    """Split a command as a shell would, though none ever reads it. Raises RequestError."""
    try:
        words = shlex.split(text)
    except ValueError as failure:
        raise RequestError(
            f"found unbalanced quotes; expected a command as for a shell: {failure}", place=Place(f"{option} {text!r}")
        ) from None
    if not words:
        raise wrong(option, repr(text), "a command")
    return words


def names(commands: Sequence[Sequence[str]]) -> list[str]:
    """Return a short name for each command, unlike the others: as a shell would read it, cut in the middle."""
    unique: list[str] = []
    for command in commands:
        text = " ".join(shlex.join(command).split())
        short = text if len(text) <= LONGEST else f"{text[: LONGEST - 17]}…{text[-16:]}"
        name, number = short, 1
        while name in unique:
            number += 1
            name = f"{short} ({number})"
        unique.append(name)
    return unique


# ``--metric``: one that is known by its name, or how to read one from the command's output.
#
# ``NAME,WORD,…=regex:PATTERN`` or ``NAME,WORD,…=json:/POINTER``. The words before the equals sign can stand in any
# order: ``lower``, ``higher`` or ``none`` says which is better (one of them must be there), ``stderr`` where it is
# printed, ``difference`` that it can be 0 or negative, ``step=0.001`` the smallest step of the printed figure; any
# other is the unit. Everything after the colon belongs to the pattern, so that it needs no escaping.


def read_metric(text: str) -> dict[str, Any] | str:
    """Return the table ``[[workload.metric]]`` of ``text``, or the name of a known metric. Raises RequestError."""
    match = _DEFINITION.fullmatch(text)
    if match is None:
        if "=" in text or "," in text:
            raise wrong(OPTION, text, "NAME of a known metric, NAME,…=regex:PATTERN or NAME,…=json:/POINTER", _EXAMPLE)
        return text
    name, *words = match[1].split(",")
    table: dict[str, Any] = {"name": name}
    for word in words:
        field, value = _word(word.strip(), text)
        if field in table:
            raise wrong(OPTION, text, f'one {field}; found "{table[field]}" and "{value}"', _EXAMPLE)
        table[field] = value
    if "direction" not in table:
        raise wrong(OPTION, text, f"a direction before the =: {name},lower or {name},higher or {name},none", _EXAMPLE)
    return {**table, _FIELD[match[2]]: match[3]}


def _word(word: str, text: str) -> tuple[str, str | float]:
    if word in _WORDS:
        return _WORDS[word]
    if word.startswith("step="):
        try:
            return "resolution", float(word.removeprefix("step="))
        except ValueError:
            raise wrong(OPTION, text, f'a number as in step=0.001; found "{word}"', _EXAMPLE) from None
    if not word:
        raise wrong(OPTION, text, "a word after each comma", _EXAMPLE)
    return "unit", word
