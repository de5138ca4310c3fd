"""An experiment across reboots from its first command to its end: begun, resumed in each boot, and restored."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import typer

from ajuste.catalogue.loader import Catalogue
from ajuste.machine.session import machine_marks
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.wording import visible_line
from ajuste.report.format import duration
from ajuste.run.experiment import Anew, prepare
from ajuste.run.testbed import RunOptions
from ajuste.study.schema import Study
from ajuste_boots.extent import BOOT_SECONDS, boot_range
from ajuste_boots.session import (
    RESUMED_BY_SYSTEMD,
    BootPlan,
    BootSession,
    RebootableMachine,
    RebootWanted,
    kept_environment,
    plan_entries,
    resumed,
)


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
