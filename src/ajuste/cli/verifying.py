"""``ajuste restore --verify``: whether the machine is as it was before the last run that changed it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.home import Home
from ajuste.model.error import RunError
from ajuste.report.visible import visible_line
from ajuste.target.host import HostTarget
from ajuste.target.kept_state import Difference, verify


def show_verification(home: Home, *, as_json: bool) -> None:
    """Read the machine and say what is otherwise. Raises RunError if a tunable is that Ajuste wrote."""
    with HostTarget() as target:
        found = verify(home, target, catalogue())
    own = [one for one in found.differences if one.by_ajuste]
    others = [one for one in found.differences if not one.by_ajuste]
    before = f"before run {found.since.run} ({found.since.kept})"
    if as_json:
        document = {
            "run": found.since.run,
            "kept": found.since.kept,
            "checked": found.checked,
            "restored": not own,
            "differences": [asdict(one) for one in found.differences],
        }
        typer.echo(json.dumps(document, indent=2))
    elif not found.differences:
        typer.echo(visible_line(f"All {found.checked} tunables that were read are as they were {before}."))
    else:
        typer.echo(visible_line(f"{len(found.differences)} of {found.checked} tunables differ from {before}."))
        _show("Written by Ajuste, and not as before:", own)
        _show("Changed since, not by Ajuste:", others)
    if own:
        raise RunError(
            f"{len(own)} of the tunables that Ajuste wrote {'is' if len(own) == 1 else 'are'} not as before the run",
            hint="run `ajuste restore`; if there is nothing to put back, somebody has changed them since",
        )


def _show(title: str, differences: Sequence[Difference]) -> None:
    if differences:
        typer.echo(title)
    for one in differences:
        now = f"is {one.now}" if one.now is not None else "cannot be read"
        typer.echo(visible_line(f"  {one.tunable} {now}, was {one.before}"))
