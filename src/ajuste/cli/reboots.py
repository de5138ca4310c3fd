"""``ajuste reboots``: the experiment that goes on across reboots of this machine."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Final, Literal

import typer

from ajuste.cli.options import Json, example
from ajuste.machine.boot.machine import RebootableMachine
from ajuste.machine.boot.session import RESUMED_BY_SYSTEMD, BootSession, last_boots, remove_units, resumed
from ajuste.machine.home import home
from ajuste.model.boot import KeptBoots
from ajuste.model.error import RunError
from ajuste.model.wording import visible_line

_LOST: Final = {"down": "the kernel did not come up", "cut": "the machine went down before its trials were done"}


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
        _resume()
        return
    session = BootSession.kept(home().reboots, RebootableMachine())
    kept = last_boots(home().reboots) if session is None else session.kept_boots
    if as_json:
        boots = None if kept is None else kept.model_dump(mode="json")
        typer.echo(json.dumps({"going_on": session is not None, "boots": boots}, indent=2))
        return
    for line in _ended(kept) if session is None else _going_on(session):
        typer.echo(visible_line(line))


def _resume() -> None:
    """Go on with the experiment of this machine, with its own command and environment, once all has started."""
    machine = RebootableMachine()
    session = BootSession.kept(home().reboots, machine)
    if session is None:
        remove_units(machine)
        return
    if session.plan.phase == "ending":
        from ajuste.cli.rebooting import end

        end(session)
        return
    resumed(machine)
    _wait_until_up(machine)
    plan = session.plan
    os.chdir(plan.directory)
    os.environ.update(plan.environment | {RESUMED_BY_SYSTEMD: "1"})
    sys.stdout.flush()
    os.execv(plan.command[0], list(plan.command))  # noqa: S606 - the command that this machine's root gave


def _wait_until_up(machine: RebootableMachine) -> None:
    """Until everything that starts at boot has started; some of it may have failed."""
    try:
        machine.run(("systemctl", "is-system-running", "--wait"))
    except RunError:
        return


def _going_on(session: BootSession) -> list[str]:
    plan = session.plan
    up = sum(one.outcome == "up" for one in plan.boots)
    states, blocks = len(plan.states), "block" if plan.each == 1 else "blocks"
    lost = [f"{one.number} ({one.state}): {_LOST[one.outcome]}" for one in plan.boots if one.outcome in _LOST]
    return [
        f"An experiment goes on across reboots, by {plan.loader}: {' '.join(plan.command)}",
        f"Boots so far: {up}, of {states} different ones, with {plan.each} {blocks} each.",
        *(f"Boot {one}." for one in lost),
        f"Its output is in {session.directory / 'log'}.",
        "End it with `ajuste restore`.",
    ]


def _ended(kept: KeptBoots | None) -> list[str]:
    if kept is None:
        return ["No experiment goes on across reboots."]
    return [f"No experiment goes on across reboots. Boots of the last one: {len(kept.boots)}."]
