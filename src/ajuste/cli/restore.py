"""``ajuste restore``: put back what an experiment left changed when it was killed together with its guardian."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ajuste.cli.example import example
from ajuste.cli.options import Json
from ajuste.cli.verifying import show_verification
from ajuste.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.model.plan import location_words
from ajuste.report.visible import visible_line
from ajuste.target.journals import OldValue, leftovers, old_values, require_readable, restore_from
from ajuste.target.machine_lock import MachineLock


@example("ajuste restore --dry-run")
def restore(
    places: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[JOURNAL|DIR…]", help="Journals, or directories of them; your own if none is given."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be put back.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only compare the machine with what it was before the last run.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put back what an experiment on this machine left changed.

    That is needed only if its agent and the agent's guardian were both killed.
    """
    if verify and (places or dry_run):
        raise RequestError(
            "--verify conflicts with --dry-run and JOURNAL: it puts nothing back", hint="leave one of them out"
        )
    own = home().journals
    with MachineLock(None, restoring=True) as lock:
        for note in lock.found:
            typer.echo(visible_line(note), err=True)
        if verify:
            show_verification(home(), as_json=as_json)
            return
        elsewhere = lock.journals_before
        # A home that has been removed since then left nothing behind that is known.
        kept = [own, *([elsewhere] if elsewhere not in (None, own) else [])]
        chosen = places or [place for place in kept if place is not None and place.exists()]
        journals = [journal for place in chosen for journal in _journals(place)]
        require_readable(journals)
        if dry_run:
            _show_steps(journals, as_json)
            return
        restoration = restore_from(journals)
    if as_json:
        typer.echo(json.dumps({"done": restoration.done, "events": restoration.events}, indent=2))
    else:
        _show(journals, restoration.events)
    if not restoration.done:
        raise RunError(
            "not everything was put back; what is left stays in its journal",
            hint="mend what stands in the way, and run `ajuste restore` again",
        )


def _journals(place: Path) -> tuple[Path, ...]:
    if place.is_dir():
        found = leftovers(place)
        return (*found.left, *found.void)
    if not place.exists():
        raise RequestError(f"there is no journal {place}")
    return (place,)


def _show(journals: list[Path], events: tuple[dict[str, Any], ...]) -> None:
    if not journals:
        typer.echo("There is nothing to put back.")
    for event in events:
        match event:
            case {"event": "restored", "tunable": name, "found": found, "value": value}:
                was = "as it was" if found == value else f"it was {found}"
                typer.echo(visible_line(f"{name} is {value} ({was})"))
            case {"event": "failed", "message": message}:
                typer.echo(visible_line(f"not put back: {message}"))
            case {"event": "journal", "path": path, "state": state}:
                message = event.get("message")
                typer.echo(visible_line(f"{path}: {state}{f', {message}' if message else ''}"))


def _show_steps(journals: list[Path], as_json: bool) -> None:
    steps: dict[str, list[OldValue]] = {str(path): old_values(path) for path in journals}
    if as_json:
        document = {path: [step.model_dump(mode="json") for step in own] for path, own in steps.items()}
        typer.echo(json.dumps({"would restore": document}, indent=2))
        return
    if not journals:
        typer.echo("There is nothing to put back.")
    for path, own in steps.items():
        typer.echo(visible_line(f"{path}:"))
        for step in own:
            where = location_words(step.location)
            typer.echo(visible_line(f"  {step.tunable} would be {step.before} again, in {where}"))
    typer.echo("Nothing was changed.")
