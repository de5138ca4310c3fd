"""Scripts: which interpreter their first line asks for.

Source: execve(2), section "Interpreter scripts"; env(1) of GNU coreutils for ``-S``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ajuste.model.error import RequestError

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where ``env`` looks for a program in the guest."""

_LONGEST_LINE = 256
_NEEDS_A_TREE = re.compile(
    r"(python|pypy|perl|ruby|irb|node|nodejs|deno|bun|php|java|Rscript|R|julia|octave|tclsh|wish|expect|guile|racket|erl|"
    r"escript|elixir|ghci|runghc|pwsh|dotnet|mono)[0-9.]*"
)


def interpreters_of(script: Path) -> tuple[Path, ...]:
    """The programs that the first line of ``script`` names (two with ``env``); none if it has no ``#!``.

    Raises RequestError where one does not exist.
    """
    with script.open("rb") as file:
        line = file.read(_LONGEST_LINE).split(b"\n", 1)[0]
    if not line.startswith(b"#!"):
        return ()
    words = line[2:].decode(errors="replace").split()
    if not words or not words[0].startswith("/"):
        raise RequestError(f"the first line of {script} names no interpreter by its absolute path")
    interpreter = Path(words[0])
    if not interpreter.is_file():
        raise RequestError(f"{interpreter}, the interpreter of {script}, does not exist on this machine")
    if interpreter.name != "env":
        return (interpreter,)
    name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    program = shutil.which(name, path=SEARCH_PATH) if name else None
    if program is None:
        raise RequestError(f"{name or 'the program'}, which {script} asks env for, was not found in {SEARCH_PATH}")
    return (interpreter, Path(program))


def check_self_contained(program: Path, wanted_by: str) -> None:
    """Raise RequestError for the interpreters that cannot work without a library tree of their own."""
    for name in (program.name, program.resolve().name):
        if _NEEDS_A_TREE.fullmatch(name):
            raise RequestError(
                f"{wanted_by} needs {program}, which cannot work without its own tree of library files; a guest is "
                "given single programs only",
                hint="use a compiled program, or a shell script (bash, dash) and the programs that it calls",
            )
