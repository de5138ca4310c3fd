"""Commands on a command line: programs, or workloads of the catalogue by their names.

A word that names a workload of the catalogue, alone or followed by its parameters as ``NAME=VALUE``, is that workload;
anything else is a program with its arguments. The program of that name is run when it is given with a path.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ajuste.adhoc.amount import wrong
from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError

LONGEST: Final = 48
"""Characters of a command in the name of a configuration."""

_PARAMETER: Final = re.compile(r"[a-z][a-z0-9_]*=.*", re.DOTALL)


def job(words: Sequence[str], catalogue: Catalogue) -> dict[str, Any]:
    """``kind`` and ``parameters``, or ``command``: as the tables of a study have it."""
    name, *rest = words
    if name in catalogue.workloads and all(_PARAMETER.fullmatch(word) for word in rest):
        given = dict(word.split("=", 1) for word in rest)
        return {"kind": name, "parameters": given} if given else {"kind": name}
    return {"command": argv(words)}


def argv(words: Sequence[str]) -> list[str]:
    """``words`` as a study has them: a program that is not below the caller's directory by its whole path."""
    program = words[0]
    if "/" in program and ".." in PurePosixPath(program).parts:
        program = str(Path(program).absolute().resolve())
    return [program, *words[1:]]


def split(option: str, text: str) -> list[str]:
    """A command in one text, split as a shell would, though none ever reads it. Raises RequestError."""
    try:
        words = shlex.split(text)
    except ValueError as failure:
        raise RequestError(f"cannot be split into words: {failure}", place=Place(f"{option} {text!r}")) from None
    if not words:
        raise wrong(option, repr(text), "a command")
    return words


def names(commands: Sequence[Sequence[str]]) -> list[str]:
    """A name for each command that is short and its own: the command as a shell would read it, cut in the middle."""
    found: list[str] = []
    for command in commands:
        text = " ".join(shlex.join(command).split())
        short = text if len(text) <= LONGEST else f"{text[: LONGEST - 17]}…{text[-16:]}"
        name, number = short, 1
        while name in found:
            number += 1
            name = f"{short} ({number})"
        found.append(name)
    return found
