"""``ajuste reboots``: the experiment that goes on across reboots of this machine."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Annotated, Final, Literal

import typer

from ajuste.cli.options import Json, example
from ajuste.machine.home import home
from ajuste.model.error import RunError
from ajuste.model.wording import visible_line
from ajuste_boots.experiment import end
from ajuste_boots.session import (
    RESUMED_BY_SYSTEMD,
    BootSession,
    RebootableMachine,
    last_boots,
    remove_units,
    resumed,
)

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
    session = BootSession.load(home().reboots, RebootableMachine())
    recorded = last_boots(home().reboots) if session is None else session.kept_boots
    if as_json:
        boots = None if recorded is None else recorded.model_dump(mode="json")
        typer.echo(json.dumps({"going_on": session is not None, "boots": boots}, indent=2))
        return
    if session is None:
        last = f" Boots of the last one: {len(recorded.boots)}." if recorded is not None else ""
        typer.echo(f"No experiment goes on across reboots.{last}")
        return
    for line in _going_on(session):
        typer.echo(visible_line(line))


def _resume() -> None:
    machine = RebootableMachine()
    session = BootSession.load(home().reboots, machine)
    if session is None:
        remove_units(machine)
        return
    if session.plan.phase == "ending":
        end(session)
        return
    resumed(machine)
    # Services that still start would disturb the trials. The exit code is 1 if any unit failed; that is no reason to
    # stop.
    with suppress(RunError):
        machine.run(("systemctl", "is-system-running", "--wait"))
    plan = session.plan
    os.chdir(plan.directory)
    os.environ.update(plan.environment | {RESUMED_BY_SYSTEMD: "1"})
    sys.stdout.flush()
    os.execv(plan.command[0], list(plan.command))  # noqa: S606 - the command that this machine's root gave


def _going_on(session: BootSession) -> list[str]:
    plan = session.plan
    up = sum(boot.outcome == "up" for boot in plan.boots)
    states, blocks = len(plan.states), "block" if plan.each == 1 else "blocks"
    lost = [f"{boot.number} ({boot.state}): {_LOST[boot.outcome]}" for boot in plan.boots if boot.outcome in _LOST]
    return [
        f"An experiment goes on across reboots, by {plan.loader}: {' '.join(plan.command)}",
        f"Boots so far: {up}, of {states} different ones, with {plan.each} {blocks} each.",
        *(f"Boot {line}." for line in lost),
        f"Its output is in {session.directory / 'log'}.",
        "End it with `ajuste restore`.",
    ]
