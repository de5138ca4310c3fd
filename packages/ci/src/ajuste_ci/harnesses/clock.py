"""The clock of harnesses that measure for a time: it advances by one step a call."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from ajuste.study.job import Argv
from ajuste_ci.harnesses.base import ADDED, Output

_LIBRARY: Final = "clock.so"


def add_clock(directory: Path, output: Output) -> str:
    """Build the clock in the added files of ``directory``; return its name, relative to that."""
    name = f"{ADDED}/{_LIBRARY}"
    if not (directory / name).exists():
        with as_file(files("ajuste_ci.harnesses") / "clock.c") as source:
            output(("cc", "-O2", "-shared", "-fPIC", "-o", name, str(source)), directory)
    return name


def with_clock(step_ns: int, command: Argv, **variables: str) -> Argv:
    """Return ``command`` with that clock; ``variables`` of its environment come before it."""
    words = {"LD_PRELOAD": f"{ADDED}/{_LIBRARY}", "AJUSTE_STEP_NS": str(step_ns)} | variables
    return ("env", *(f"{name}={value}" for name, value in words.items()), *command)
