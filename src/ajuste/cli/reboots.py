"""``ajuste reboots``: the experiment that goes on across reboots of this machine."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from ajuste.cli.options import Json, example
from ajuste.cli.rebooting import directory_of, resume, state_words
from ajuste.machine.boot.machine import RebootableMachine
from ajuste.machine.boot.session import BootSession, last_boots
from ajuste.machine.home import home
from ajuste.model.boot import KeptBoots
from ajuste.model.wording import visible_line
from ajuste.report.format import count_of


@example("ajuste reboots")
def reboots(
    what: Annotated[
        Literal["status", "resume"],
        typer.Argument(metavar="[status|resume]", help="resume: go on after a boot, as the systemd unit does."),
    ] = "status",
    as_json: Json = False,
) -> None:
    """Show the experiment that goes on across reboots.

    `ajuste run --reboots` begins one; it resumes by itself after each boot. `ajuste restore` ends it.
    """
    if what == "resume":
        resume(home())
        return
    session = BootSession.kept(directory_of(home()), RebootableMachine())
    kept = last_boots(directory_of(home())) if session is None else session.kept_boots
    if as_json:
        boots = None if kept is None else kept.model_dump(mode="json")
        typer.echo(json.dumps({"going_on": session is not None, "boots": boots}, indent=2))
    elif session is not None:
        for line in state_words(session):
            typer.echo(visible_line(line))
    else:
        typer.echo(visible_line(_ended(kept)))


def _ended(kept: KeptBoots | None) -> str:
    if kept is None:
        return "No experiment goes on across reboots."
    return f"No experiment goes on across reboots. The last one took {count_of(len(kept.boots), 'boot')}."
