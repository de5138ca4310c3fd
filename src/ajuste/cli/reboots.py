"""``ajuste reboots``: the experiment that goes on across reboots of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from ajuste.catalogue.loader import Catalogue
from ajuste.cli.options import Json, example
from ajuste.machine.boot.session import (
    RESUMED_BY_SYSTEMD,
    BootPlan,
    BootSession,
    RebootableMachine,
    RebootWanted,
    kept_environment,
    last_boots,
    plan_entries,
    remove_units,
    resumed,
)
from ajuste.machine.home import home
from ajuste.machine.session import machine_marks
from ajuste.model.boot import KeptBoots
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.wording import visible_line
from ajuste.report.format import duration
from ajuste.run.experiment import Anew, prepare
from ajuste.run.testbed import RunOptions
from ajuste.study.answerable import BOOT_SECONDS, boot_range
from ajuste.study.schema import Study


def across_boots(
    study: Study, catalogue: Catalogue, means: RunOptions, fresh: Anew, measured: Callable[[RunOptions, Anew], int]
) -> int:
    """Begin ``study`` or go on with it in this boot; ``measured`` does so until another boot is wanted, which follows
    at once. At the end all is as it was, whatever happened. Raises RequestError before anything is changed.
    """
    machine = RebootableMachine()
    session = _session(study, catalogue, means, machine)
    own = replace(means, reboots=session)
    anew: Anew = (lambda *_: False) if session.plan.run else fresh
    try:
        session.take_up()
        resumed(machine)
        code = measured(own, anew)
    except RebootWanted:
        _say(f"Rebooting into {session.plan.boots[-1].state}; the experiment goes on by itself.")
        for number in (signal.SIGTERM, signal.SIGHUP):  # This machine goes down, and that is as it should be.
            signal.signal(number, signal.SIG_IGN)
        session.reboot()
        return 0
    except KeyboardInterrupt:
        if RESUMED_BY_SYSTEMD not in os.environ:  # Otherwise this machine goes down, and the experiment goes on later.
            end(session)
        raise
    except AjusteError:
        end(session)
        raise
    end(session)
    return code


def end(session: BootSession) -> None:
    """Boot entries and units as they were; a last reboot if this is a boot of the experiment."""
    is_own = bool(session.machine.mark)
    for note in session.end():
        _say(note)
    _say("Boot entries are as they were before the experiment.")
    if is_own:
        _say("Rebooting into this machine's own kernel and command line.")
        session.machine.run(("systemctl", "reboot"))


def _session(study: Study, catalogue: Catalogue, means: RunOptions, machine: RebootableMachine) -> BootSession:
    # The experiment that goes on, if it is this one, or a new one. Raises RequestError.
    directory, command = means.home.reboots, _command()
    session = BootSession.kept(directory, machine)
    if session is not None:
        if session.plan.command != command:
            raise RequestError(
                f"another experiment across reboots is going on: {' '.join(session.plan.command)}",
                hint="look at it with `ajuste reboots`, or end it with `ajuste restore`",
            )
        return session
    machine.require_able(directory)
    resolved = prepare(study, catalogue, means).resolved
    loader = machine.choose(means.loader)
    entries = plan_entries(resolved.boots, machine)
    machine.require_bootable(loader, entries)
    least, most = boot_range(study, len(entries))
    _say(
        f"This machine reboots {least} to {most} times, by {loader.name}, in about "
        f"{duration(least * BOOT_SECONDS)} to {duration(most * BOOT_SECONDS)} without the trials."
    )
    plan = BootPlan(
        loader=loader.name,
        command=command,
        environment=kept_environment(os.environ),
        directory=str(Path.cwd()),
        kernel=machine.release,
        marks=machine_marks(),
        states=resolved.boots,
        kernels=tuple(entry.kernel for entry in entries),
        each=study.blocks_per_boot,
        warm_up=study.design.warm_up,
    )
    return BootSession.begin(directory, plan, machine)


def _command() -> tuple[str, ...]:
    # This command as it can be given again after a reboot.
    own = Path(sys.argv[0])
    program = str(own.absolute()) if own.is_file() else shutil.which("ajuste")
    if program is None or not os.access(program, os.X_OK):
        raise RequestError(
            f"{sys.argv[0]} is not a program that systemd can start again", hint="run the installed `ajuste`"
        )
    return (program, *sys.argv[1:])


def _say(text: str) -> None:
    typer.echo(visible_line(text), err=True)


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
    # Go on with the experiment of this machine, with its own command and environment, once all has started.
    machine = RebootableMachine()
    session = BootSession.kept(home().reboots, machine)
    if session is None:
        remove_units(machine)
        return
    if session.plan.phase == "ending":
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
    # Until everything that starts at boot has started; some of it may have failed.
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
