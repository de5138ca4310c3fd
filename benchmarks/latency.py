"""Duration of commands that measure nothing, beside ``python3 -c pass``. ``python -m benchmarks latency``."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from ajuste.machine.files import locked
from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.kills import TESTS_LOCK
from benchmarks.place import own_home

ROUNDS: Final = 7
MOST: Final = 500.0
"""Milliseconds that a command may take."""
MOST_OF_HELP: Final = 120.0
"""Milliseconds that help and errors may take longer than an empty program."""
EMPTY: Final = "python3 -c pass"
FINISHED: Final = "compare --blocks 10 -- true"
HELP: Final = ("--help", "compare --help", "tunables show no.such.name")
COMMANDS: Final = ("tunables", "studies", "report", "report compare", FINISHED, "plan granularity")


def measure() -> tuple[Comparison, ...]:
    with own_home() as place, locked(TESTS_LOCK):
        run = partial(_run, place.data.parent)
        run(FINISHED)  # measured once: then there is a run to be shown
        figures = by_turns({name: partial(run, name) for name in (EMPTY, *HELP, *COMMANDS)}, ROUNDS)
    middle = {name: median(values) for name, values in figures.items()}
    reached = all(middle[name] - middle[EMPTY] <= MOST_OF_HELP for name in HELP)
    return (
        Comparison(
            name="latency",
            what="commands that measure nothing",
            unit="ms",
            figures=figures,
            goal=f"help and errors {MOST_OF_HELP:.0f} ms over {EMPTY}, the others {MOST:.0f} ms in all",
            reached=reached and all(middle[name] <= MOST for name in COMMANDS),
        ),
    )


def _run(home: Path, name: str) -> float:
    """Milliseconds of one command."""
    ajuste = str(Path(sys.executable).with_name("ajuste"))
    command = [sys.executable, "-c", "pass"] if name == EMPTY else [ajuste, *name.split()]
    environment = {**os.environ, "AJUSTE_HOME": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Else every start compiles the whole program again.
    return 1e3 * seconds(lambda: subprocess.run(command, env=environment, check=False, capture_output=True))
