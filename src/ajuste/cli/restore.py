"""``ajuste restore``: put back what an experiment left changed when it was killed together with its guardian."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.options import Json, example
from ajuste.executor.host.adoption import Adoption, adoption_of, adoptions, require_latest, withdraw
from ajuste.executor.host.caller import remove_left_services
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.journals import (
    ADOPTED,
    JOURNAL,
    JournalLeft,
    Scope,
    StateDifference,
    discard,
    event_words,
    journals_at_rest,
    permitted,
    require_readable,
    restore_from,
    scopes_left,
    verify,
)
from ajuste.executor.host.machine_lock import MachineLock
from ajuste.machine.home import BOOT_STATE, Home, command_to_add, home
from ajuste.model.error import RequestError, RunError
from ajuste.model.plan import Location, location_words
from ajuste.model.tunable import same_value
from ajuste.model.wording import count_of, visible_line
from ajuste.run.testbed import RunOptions, has_testbed, rebooting_testbed


@example("ajuste restore --dry-run")
def restore(
    places: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[JOURNAL|DIR…]", help="Journals, or directories of journals (default: all)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be restored; change nothing.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare this machine with its state before the last run; change nothing.")
    ] = False,
    give_up: Annotated[bool, typer.Option("--discard", help="Remove these journals without restoring.")] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Undo what was adopted from this run (ajuste live --adopt)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Restore what an experiment left changed on this machine.

    You need this if the agent and its guardian were both killed, or with --run for a winner that was adopted.
    """
    if run is not None and (places or verify or give_up):
        raise RequestError("--run conflicts with --verify, --discard and JOURNAL", hint="remove --run, or the others")
    if verify and (places or dry_run or give_up):
        raise RequestError(
            "--verify conflicts with --dry-run, --discard and JOURNAL",
            hint="remove --verify, or the others",
        )
    with MachineLock("restoration") as lock:
        for note in lock.notes:
            typer.echo(visible_line(note), err=True)
        if verify:
            show_verification(home(), as_json=as_json)
            return
        if give_up:
            _discard(places or [], dry_run=dry_run)
            return
        if run is not None:
            _undo(adoption_of(run), dry_run=dry_run, as_json=as_json)
            return
        unended = None if places else end_reboots(dry_run=dry_run)
        scopes = _scopes(places)
        journals = tuple(journal for scope in scopes for journal in journals_at_rest(scope))
        require_readable(Path(journal.path) for journal in journals if Path(journal.path).exists())
        allowed = permitted(value for journal in journals for value in journal.old_values)
        if dry_run:
            if not as_json:
                _tell_adopted(places)
            _show_steps(journals, allowed, as_json)
            require_ended(unended)
            return
        restorations = [restore_from(scope, allowed) for scope in scopes]
        left = () if lock.notes else remove_left_services()  # others may be using theirs
    done = all(restoration.done for restoration in restorations)
    events = tuple(event for restoration in restorations for event in restoration.events)
    if as_json:
        typer.echo(json.dumps({"done": done, "events": events, "removed": [*map(str, left)]}, indent=2))
    else:
        _show(journals, events, left)
        _tell_adopted(places)
    if not done:
        raise _incomplete(events)
    require_ended(unended)


def _incomplete(events: Sequence[dict[str, Any]]) -> RunError:
    refused = [event["tunable"] for event in events if event["event"] == "failed" and event.get("tunable")]
    left = [event["path"] for event in events if event["event"] == "journal" and event["state"] in _LEFT]
    which = f" ({', '.join(dict.fromkeys(refused))})" if refused else ""
    discard = f"ajuste restore --discard {shlex.join(left) or 'JOURNAL'}"
    return RunError(
        f"not everything was restored{which}; the rest stays in its journal",
        hint=f"fix the cause and run `ajuste restore` again, or set the values by hand and give up the rest: {discard}",
    )


def _tell_adopted(places: list[Path] | None) -> None:
    for adoption in () if places else adoptions():
        typer.echo(visible_line(f"Left in force: {adoption}"))


def _undo(adoption: Adoption, *, dry_run: bool, as_json: bool) -> None:
    require_latest(adoption)
    if os.geteuid() != 0:
        raise RequestError("what root adopted only root can undo", hint=f"run {adoption.undo}")
    if dry_run:
        messages = [
            f"{value.tunable} would be {value.before} again (adopted: {value.value})"
            if adoption.is_in_force
            else f"{value.tunable} would stay as the last reboot left it"
            for value in adoption.values
        ]
        messages += [
            f"{file.path} would {'be removed' if file.is_unchanged else 'stay: it was edited since'}"
            for file in adoption.files
            if Path(file.path).exists()
        ]
    else:
        messages = withdraw(adoption)
    if as_json:
        typer.echo(json.dumps({"run": adoption.run, "done": not dry_run, "said": messages}, indent=2))
        return
    for line in (*messages, *(["Nothing was changed."] if dry_run else [])):
        typer.echo(visible_line(line))


def end_reboots(*, dry_run: bool) -> RequestError | None:
    """End an experiment across reboots, if there is one. Return why it cannot be ended here: all else is restored
    nevertheless.
    """
    if not has_testbed("reboots"):
        return _why_unended()
    bed = rebooting_testbed(RunOptions(home()))
    if (files := bed.unfinished()) is None:
        return None
    if dry_run:
        names = ", ".join(files) or "no file"
        typer.echo(visible_line(f"The experiment across reboots would end; as before it would be: {names}"), err=True)
    else:
        bed.end()
    return None


def _why_unended() -> RequestError | None:
    state = home().reboots / BOOT_STATE
    if not state.exists():
        return None
    return RequestError(
        f"an experiment across reboots has not ended ({state}); the optional part boots of Ajuste ends it",
        hint=f"install it: {command_to_add('boots')}; then run `ajuste restore` again",
    )


def require_ended(unended: RequestError | None) -> None:
    """Raise what ``end_reboots`` returned, if anything."""
    if unended is not None:
        raise unended


def _scopes(places: list[Path] | None) -> tuple[Scope, ...]:
    if not places:
        return scopes_left(home().journals)
    if adopted := next((place for place in places if ADOPTED in (place.absolute(), place.absolute().parent)), None):
        raise RequestError(
            f"{adopted} belongs to what was adopted",
            hint="run `sudo ajuste restore --run RUN`; `ajuste live status` names the run",
        )
    return (Scope(tuple(places), registered=False),)


def _discard(places: list[Path], *, dry_run: bool) -> None:
    if not places or dry_run:
        raise RequestError("--discard requires JOURNAL", hint="name them: ajuste restore --discard JOURNAL")
    for place in places:
        # The content may be damaged, so only the name distinguishes a journal from any other file of root.
        if place.suffix != JOURNAL and not place.is_dir():
            raise RequestError(
                f"--discard {place}: expected a journal, whose name ends in {JOURNAL}",
                hint="list the journals with `ajuste restore --dry-run`",
            )
    discard(places)
    for place in places:
        typer.echo(visible_line(f"Removed {place}; its settings were not restored."))


# Journals that are still there after a restoration, with something unsettled.
_LEFT: Final = ("kept", "damaged", "unknown", "malformed")


def _show(journals: tuple[JournalLeft, ...], events: tuple[dict[str, Any], ...], left: Sequence[Path]) -> None:
    if not journals and not events and not left:
        typer.echo("Nothing to restore.")
    for directory in left:
        typer.echo(visible_line(f"Removed {directory}, which services of a killed experiment left."))
    for words in filter(None, map(event_words, events)):
        typer.echo(visible_line(words))


def _show_steps(journals: tuple[JournalLeft, ...], allowed: tuple[Location, ...], as_json: bool) -> None:
    refused = [value for journal in journals for value in journal.old_values if value.location not in allowed]
    if as_json:
        document = {journal.path: _document(journal, allowed) for journal in journals}
        typer.echo(json.dumps({"would restore": document}, indent=2))
    else:
        _tell_steps(journals, allowed)
    if refused or any(journal.stands_in_the_way and journal.state != "left" for journal in journals):
        raise RunError("not everything can be restored", hint="run `ajuste restore` to restore the rest")


def _document(journal: JournalLeft, allowed: tuple[Location, ...]) -> dict[str, Any]:
    steps = [step.model_dump(mode="json") | {"permitted": step.location in allowed} for step in journal.old_values]
    return {"state": journal.state, "message": journal.message, "steps": steps}


def _tell_steps(journals: tuple[JournalLeft, ...], allowed: tuple[Location, ...]) -> None:
    if not journals:
        typer.echo("Nothing to restore.")
    for journal in journals:
        typer.echo(visible_line(f"{journal.path}: {journal.state}{f', {journal.message}' if journal.message else ''}"))
        watched = [step for step in journal.old_values if step.watched]
        if watched:
            typer.echo(f"  {count_of(len(watched), 'setting')} would be restored if a daemon of the run changed them")
        for step in (step for step in journal.old_values if not step.watched):
            where = location_words(step.location)
            if step.location in allowed:
                would = f"would be {step.before_words} again, in {where}"
            else:
                would = f"would not be written: the catalogue has no such tunable in {where} in this kernel"
            typer.echo(visible_line(f"  {step.tunable} {would}"))
    typer.echo("Nothing was changed.")


# ``ajuste restore --verify``: compare the machine with its state before the last run that changed it.


def show_verification(home: Home, *, as_json: bool) -> None:
    """Print which tunables differ from their values before the last run.

    Raises:
        RunError: Ajuste wrote one of them, and it was not restored.
    """
    with HostExecutor() as target:
        verification = verify(home, target, catalogue())
    adopted_values = {
        value.tunable: value.value for adoption in adoptions() if adoption.is_of_this_boot for value in adoption.values
    }
    adopted = [
        difference
        for difference in verification.differences
        if difference.now and same_value(adopted_values.get(difference.tunable, ""), difference.now)
    ]
    unrestored = [
        difference for difference in verification.differences if difference.by_ajuste and difference not in adopted
    ]
    others = [difference for difference in verification.differences if not difference.by_ajuste]
    before = f"before run {verification.since.run} ({verification.since.kept})"
    if as_json:
        document = {
            "run": verification.since.run,
            "kept": verification.since.kept,
            "checked": verification.checked,
            "restored": not unrestored,
            "differences": [asdict(difference) for difference in verification.differences],
        }
        typer.echo(json.dumps(document, indent=2))
    elif not verification.differences:
        typer.echo(visible_line(f"All {verification.checked} tunables that were read are as they were {before}."))
    else:
        typer.echo(
            visible_line(f"{len(verification.differences)} of {verification.checked} tunables differ from {before}.")
        )
        _show_differences("Adopted:", adopted)
        _show_differences("Written by Ajuste, and not restored:", unrestored)
        _show_differences("Changed since, but not by Ajuste:", others)
    if unrestored:
        verb = "is" if len(unrestored) == 1 else "are"
        raise RunError(
            f"{len(unrestored)} of the tunables that Ajuste wrote {verb} not as before the run",
            hint="run `ajuste restore`; if there is nothing to put back, somebody has changed them since",
        )


def _show_differences(title: str, differences: Sequence[StateDifference]) -> None:
    if differences:
        typer.echo(title)
    for difference in differences:
        now = f"is {difference.now}" if difference.now is not None else "cannot be read"
        typer.echo(visible_line(f"  {difference.tunable} {now}, was {difference.before}"))
