"""``ajuste store``: check, back up, salvage and clean up the store of all runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.command_line import Commands
from ajuste.cli.listing import since_of, size_text
from ajuste.cli.options import Json, example, examples, help_if_alone
from ajuste.machine.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import count_of, visible, visible_line
from ajuste.store.head import PINNED, Head, RunNotes, valid_tags
from ajuste.store.location import redact_password
from ajuste.store.salvage import Findings, inspect_store
from ajuste.store.salvage import salvage as salvage_store
from ajuste.store.store import Store
from ajuste.store.upkeep import Unwanted, back_up, forget, is_measured, shrink, sizes

app = Commands(
    help=examples(
        "Check, back up or clean up the store of all runs, or salvage a damaged one.",
        "ajuste store check",
        "ajuste store backup runs.sqlite",
        "ajuste store salvage -o salvaged.sqlite",
    ),
    invoke_without_command=True,
    callback=help_if_alone,
)


@app.command()
@example("ajuste store check", "ajuste store check --json")
def check(as_json: Json = False) -> None:
    """Verify the store's file and every checksum and count. Exit code 1 if anything is damaged."""
    url = home().store_url
    findings = inspect_store(url)
    if as_json:
        typer.echo(
            json.dumps({"store": redact_password(url), "intact": not findings.damaged, **asdict(findings)}, indent=2)
        )
    else:
        whole = _amount(findings)
        typer.echo(
            f"{whole} in {redact_password(url)} are intact."
            if not findings.damaged
            else f"{whole} are intact. Damaged:"
        )
        for line in findings.damaged:
            typer.echo(f"  {visible_line(line)}")
    if findings.damaged:
        raise RunError(
            f"the store {redact_password(url)} is damaged",
            hint="run ajuste store salvage -o FILE to save all that is intact",
        )


def _amount(findings: Findings) -> str:
    suites = f", {count_of(findings.suites, 'suite')}" if findings.suites else ""
    return f"{count_of(findings.runs, 'run')}{suites} and {count_of(findings.trials, 'trial')}"


@app.command()
@example("ajuste store salvage -o salvaged.sqlite")
def salvage(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The new store, an SQLite file.")],
    as_json: Json = False,
) -> None:
    """Copy all that is intact in a damaged store to a new one, and list what is lost.

    The damaged store is not changed. To measure lost trials again, run the run's command again.
    """
    if not output.absolute().parent.is_dir():
        raise RequestError(f"--output {output}: expected a file in an existing directory")
    done = salvage_store(home().store_url, output)
    if as_json:
        typer.echo(json.dumps({"store": str(output), **asdict(done)}, indent=2))
        return
    typer.echo(f"{count_of(done.runs, 'run')} and {count_of(done.trials, 'trial')} are in {visible_line(str(output))}.")
    for line in done.lost:
        typer.echo(f"lost: {visible_line(line)}")
    typer.echo("Set AJUSTE_STORE to it, or replace the old store with it.")


@app.command()
@example("ajuste store backup runs.sqlite")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy, a new file.")], as_json: Json = False
) -> None:
    """Copy the store to FILE, also while runs go on, and verify the copy."""
    if not file.absolute().parent.is_dir():
        raise RequestError(f"{file}: expected a file in an existing directory")
    findings = back_up(home().store_url, file)
    size = file.stat().st_size
    if as_json:
        counts = {"runs": findings.runs, "trials": findings.trials, "suites": findings.suites}
        typer.echo(json.dumps({"file": str(file), **counts, "size_bytes": size}, indent=2))
        return
    typer.echo(f"{_amount(findings)} are in {visible_line(str(file))} ({size_text(size)}), verified.")


@app.command()
@example("ajuste store size")
def size(as_json: Json = False) -> None:
    """Show how much room each run takes, and for what; the largest first."""
    url = home().store_url
    with Store(url) as store:
        names = {run.id: run.study for run in store.runs()}
    room = sizes(url)
    rows = sorted(room.runs.items(), key=lambda row: -sum(row[1].values()))
    if as_json:
        documents = [{"run": run, "study": names.get(run), "size_bytes": parts} for run, parts in rows]
        typer.echo(json.dumps({"store": redact_password(url), "file_bytes": room.file, "runs": documents}, indent=2))
        return
    for run, parts in rows:
        kinds = ", ".join(f"{kind} {size_text(part)}" for kind, part in parts.items() if part)
        name = visible_line(names.get(run, "deleted; other runs have its trials"))
        typer.echo(f"{run}  {name}  {size_text(sum(parts.values()))}: {kinds}")
    typer.echo(f"{count_of(len(names), 'run')}; the file has {size_text(room.file)}.")


@app.command()
@example(
    "ajuste store tag compare baseline",
    "ajuste store tag compare baseline --remove",
    "ajuste store tag compare --pin --note 'before the upgrade'",
)
def tag(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, or a study (its newest run).")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD]...", help="The tags.", show_default=False)
    ] = None,
    pin: Annotated[bool, typer.Option("--pin", help="List this run before others.")] = False,
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Keep this note with the run, instead of its last one.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove these tags, or the pin, instead.")] = False,
    as_json: Json = False,
) -> None:
    """Add tags, a pin or a note to a run. By tags runs are listed, and spared by prune --untagged.

    Without any, show those that it has. --note '' removes the note.
    """
    place = home()
    notes, changed = RunNotes(place), valid_tags([*(words or ()), *([PINNED] if pin else ())])
    if remove and not changed:
        raise RequestError("--remove requires a tag or --pin", hint="remove the note by --note ''")
    with Store(place.store_url) as store:
        stored = store.find_run(run)
        (before,) = (head.tags.split() for head in store.runs() if head.id == stored.id)
        if remove and (lacking := sorted({*changed} - {*before})):
            raise RequestError(
                f"run {stored.id} has no tag {lacking[0]}; expected one of its tags: {' '.join(before) or 'none'}"
            )
        tags = set(before) - set(changed) if remove else {*before, *changed}
        if note is not None:
            notes.keep(stored.id, note)
        if changed:
            store.tag(stored, tags)
    text = notes.of(stored.id).rstrip()
    if as_json:
        typer.echo(json.dumps({"run": stored.id, "tags": sorted(tags), "note": text}, indent=2))
        return
    typer.echo(f"{stored.id}: {visible_line(' '.join(sorted(tags))) or 'no tags'}")
    if text:
        typer.echo(visible(text))


Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command()
@example("ajuste store delete compare --yes")
def delete(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs, or studies (their newest runs).", show_default=False)
    ],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete runs. Trials that another run shares stay."""
    url = home().store_url
    with Store(url) as store:
        wanted = {store.find_run(run).id for run in runs}
        _delete(store, [run for run in store.runs() if run.id in wanted], yes=yes, as_json=as_json)
    shrink(url)


@app.command()
@example("ajuste store prune --failed --dry-run", "ajuste store prune --older 365d --untagged --dry-run")
def prune(
    failed: Annotated[bool, typer.Option("--failed", help="Delete runs that failed.")] = False,
    older: Annotated[
        str | None, typer.Option(metavar="TIME", help="Delete runs older than that: 90d, or a day such as 2026-11-30.")
    ] = None,
    untagged: Annotated[bool, typer.Option("--untagged", help="Delete runs without tags.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete the runs that meet all of the given conditions. Runs that are measured now stay."""
    if not (failed or older or untagged):
        raise RequestError("a condition is required", hint="give --failed, --older TIME or --untagged")
    unwanted = Unwanted(failed, since_of(older, "--older"), untagged)
    url = home().store_url
    with Store(url) as store:
        place = home()
        matches = [run for run in unwanted.among(store.runs()) if not is_measured(run, store, place)]
        if dry_run or not matches:
            _say_deleted(matches, as_json=as_json, dry_run=dry_run)
            return
        _delete(store, matches, yes=yes, as_json=as_json)
    shrink(url)


def _delete(store: Store, runs: Sequence[Head], *, yes: bool, as_json: bool) -> None:
    what = count_of(len(runs), "run")
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise RequestError(
                f"this deletes {what}; nobody can be asked, because this is not a terminal", hint="add --yes"
            )
        for run in runs:
            typer.echo(_named(run), err=True)
        if not typer.confirm(f"Delete {what}?", err=True):
            raise typer.Exit(1)
    forget(runs, store, home())
    _say_deleted(runs, as_json=as_json, dry_run=False)


def _say_deleted(runs: Sequence[Head], *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"dry_run": dry_run, "deleted": [run.id for run in runs]}, indent=2))
        return
    verb = "would be deleted" if dry_run else "deleted"
    for run in runs:
        typer.echo(f"{verb}: {_named(run)}")
    if not runs:
        typer.echo("nothing to delete")


def _named(run: Head) -> str:
    return f"{run.id}  {visible_line(run.study)}"
