"""Options of the commands that are given a command to measure: ``compare`` and ``ablate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

CONTEXT: Final = {"allow_interspersed_args": False}
"""The options end where the command begins: what follows belongs to it."""


def option(help_text: str, metavar: str | None = None, *names: str) -> Any:
    """An option whose default is not shown, since its help says it."""
    return typer.Option(*names, help=help_text, metavar=metavar, show_default=False)


Vm = Annotated[bool, option("Run in a guest.", None, "--vm")]
Clock = Annotated[str | None, option("The guest's clock: virtual or wall (default: virtual).", "CLOCK")]
Memory = Annotated[str | None, option("Memory of the guest.", "SIZE")]
Setup = Annotated[str | None, option("Run this once before all trials.", "COMMAND")]
Prepare = Annotated[str | None, option("Run this before each trial.", "COMMAND")]
Cleanup = Annotated[str | None, option("Run this once after all trials.", "COMMAND")]
Files = Annotated[list[str] | None, option("Copy this file into the guest (repeatable).", "FILE")]
MinEffect = Annotated[str | None, option("Smallest effect that matters (default: 2%).", "SHARE")]
Confidence = Annotated[str | None, option("Confidence of all verdicts together (default: 95%).", "SHARE")]
Timeout = Annotated[str | None, option("Time limit of one trial.", "DURATION")]
SeedOfOrder = Annotated[int | None, typer.Option(min=0, help="Seed of the order (default: 1).", show_default=False)]
AsRoot = Annotated[bool, option("Run the command as root, not as the user who called sudo.", None, "--as-root")]
IgnoreFailure = Annotated[bool, option("Also measure trials that fail.", None, "--ignore-failure")]
Save = Annotated[Path | None, option("Write an equivalent study file.", "FILE")]
DryRun = Annotated[bool, option("Show the plan; change and measure nothing.", None, "--dry-run")]
Fresh = Annotated[bool, option("Start a new run; do not resume an interrupted one.", None, "--fresh")]
Report = Annotated[Path | None, option("Write the HTML report to this file.", "FILE")]
