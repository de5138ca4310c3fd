"""The native programs: where ``ajuste-agent`` and ``ajuste-workloads`` are on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ajuste.model.error import RequestError

AGENT = "ajuste-agent"
WORKLOADS = "ajuste-workloads"

_PACKAGE = Path(__file__).parent
_BUILT = _PACKAGE.parent.parent / "target" / "x86_64-unknown-linux-gnu" / "release"


def native_program(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The absolute path of a native program.

    Looked for in the directory ``AJUSTE_NATIVE`` (and there only, if it is set), in the installed package, and in the
    build directory of a source tree. Raises RequestError with the build command where it is in none of them.
    """
    chosen = environment.get("AJUSTE_NATIVE")
    places = [Path(chosen).expanduser().absolute()] if chosen else [_PACKAGE / "bin", _BUILT]
    for place in places:
        program = place / name
        if program.is_file() and os.access(program, os.X_OK):
            return program
    searched = ", ".join(str(place) for place in places)
    raise RequestError(
        f"the program {name} was not found in {searched}",
        hint="set AJUSTE_NATIVE to the directory that has it" if chosen else "build it with: cargo build --release",
    )
