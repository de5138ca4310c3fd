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


Vm = Annotated[bool, option("Run it in a guest.", None, "--vm")]
Clock = Annotated[str | None, option("The guest's clock, virtual (default) or wall.", "CLOCK")]
Memory = Annotated[str | None, option("The guest's memory.", "SIZE")]
Setup = Annotated[str | None, option("Runs once, before everything.", "COMMAND")]
Prepare = Annotated[str | None, option("Runs before each trial.", "COMMAND")]
Cleanup = Annotated[str | None, option("Runs once, after everything.", "COMMAND")]
Files = Annotated[list[str] | None, option("A file to take along into a guest (repeatable).", "FILE")]
MinEffect = Annotated[str | None, option("The smallest effect that matters; 2%.", "SHARE")]
Confidence = Annotated[str | None, option("Of all verdicts together; 95%.", "SHARE")]
Timeout = Annotated[str | None, option("Longest duration of one run.", "DURATION")]
SeedOfOrder = Annotated[int | None, typer.Option(min=0, help="Of the order; 1.", show_default=False)]
AsRoot = Annotated[bool, option("Run it as root, not as who called sudo.", None, "--as-root")]
IgnoreFailure = Annotated[bool, option("Measure runs that fail, too.", None, "--ignore-failure")]
Save = Annotated[Path | None, option("Write the study file that does the same.", "FILE")]
DryRun = Annotated[bool, option("Show what would be done, and do nothing.", None, "--dry-run")]
Fresh = Annotated[bool, option("Do not go on with an interrupted run.", None, "--fresh")]
Report = Annotated[Path | None, option("Where to write the HTML report.", "FILE")]
