"""``ajuste reboots``: the experiment that goes on across reboots of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
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
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.wording import visible_line
from ajuste.report.format import duration
from ajuste.run.experiment import Anew, prepare
from ajuste.run.testbed import RunOptions
from ajuste.study.answerable import BOOT_SECONDS, boot_range
from ajuste.study.schema import Study


def across_boots(
    study: Study,
    catalogue: Catalogue,
    run_options: RunOptions,
    fresh: Anew,
    measured: Callable[[RunOptions, Anew], int],
) -> int:
    """Start ``study``, or resume it in this boot, and return the exit code.

    ``measured`` measures until the experiment needs another boot; this machine then reboots at once. At the end, also
    after a failure, boot entries and units are restored.

    Raises:
        RequestError: The machine cannot reboot as the study needs. Nothing was changed.
    """
    machine = RebootableMachine()
    session = _session(study, catalogue, run_options, machine)
    session_options = replace(run_options, reboots=session)
    anew: Anew = (lambda *_: False) if session.plan.run else fresh
    try:
        session.take_up()
        resumed(machine)
        code = measured(session_options, anew)
    except RebootWanted:
        _say(f"Rebooting into {session.plan.boots[-1].state}; the experiment goes on by itself.")
        # systemd ends all processes with these signals on the way down: they must not count as an interruption.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        session.reboot()
        return 0
    except KeyboardInterrupt:
        # After a boot nobody sits at a terminal: the signal means that the machine goes down, and the experiment
        # resumes in the next boot.
        if RESUMED_BY_SYSTEMD not in os.environ:
            end(session)
        raise
    except AjusteError:
        end(session)
        raise
    end(session)
    return code


def end(session: BootSession) -> None:
    """Restore boot entries and units; reboot a last time if the experiment booted this kernel."""
    is_own = bool(session.machine.mark)
    for note in session.end():
        _say(note)
    _say("Boot entries are as they were before the experiment.")
    if is_own:
        _say("Rebooting into this machine's own kernel and command line.")
        session.machine.run(("systemctl", "reboot"))


def _session(study: Study, catalogue: Catalogue, run_options: RunOptions, machine: RebootableMachine) -> BootSession:
    # The stored session if this command began it, or else a new one.
    directory, command = run_options.home.reboots, _command()
    session = BootSession.load(directory, machine)
    if session is not None:
        if session.plan.command != command:
            raise RequestError(
                f"another experiment across reboots is going on: {' '.join(session.plan.command)}",
                hint="look at it with `ajuste reboots`, or end it with `ajuste restore`",
            )
        return session
    machine.require_able(directory)
    resolved = prepare(study, catalogue, run_options).resolved
    loader = machine.choose(run_options.loader)
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
    # The command with an absolute path: systemd starts it after the reboot, in another environment.
    script = Path(sys.argv[0])
    program = str(script.absolute()) if script.is_file() else shutil.which("ajuste")
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
