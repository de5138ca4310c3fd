"""``ajuste inventory``: what this machine is, and what differs between two."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError

from ajuste.cli.example import example
from ajuste.cli.inventory_sheet import print_comparison, print_inventory
from ajuste.cli.options import Json
from ajuste.home import home
from ajuste.inventory.difference import Comparison, compare
from ajuste.inventory.document import Inventory
from ajuste.inventory.take import take_inventory
from ajuste.model.error import RequestError
from ajuste.report.visible import Console
from ajuste.store.store import Store

_MOST_BYTES: Final = 64 << 20


@example("ajuste inventory", "ajuste inventory --json > here.json", "ajuste inventory --diff here.json now")
def inventory(
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="What differs: each a run, a file of --json, or now (this machine)."),
    ] = None,
    area: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Show only this area, such as CPU or Disks (repeatable).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what this machine is: processor, kernel, memory, disks, mounts, network, limits.

    Nothing that names the machine, its user or a device's serial number or address is read.
    """
    console = Console(file=sys.stdout)
    if diff is None:
        taken = take_inventory(programs=True)
        if as_json:
            typer.echo(taken.model_dump_json(indent=2))
        else:
            print_inventory(taken, console, area or ())
        return
    a, b = diff
    found = compare(_inventory(a), _inventory(b))
    if as_json:
        typer.echo(json.dumps(_document(a, b, found), indent=2, ensure_ascii=False))
    else:
        print_comparison(found, a, b, console)


def _document(a: str, b: str, found: Comparison) -> dict[str, Any]:
    return {"a": a, "b": b, **found.model_dump(mode="json")}


def _inventory(name: str) -> Inventory:
    if name == "now":
        return take_inventory(programs=True)
    path = Path(name)
    if path.is_file():
        return _from_document(_read(path), name, "it is no inventory; make one with: ajuste inventory --json > FILE")
    try:
        with Store(home().store_url) as store:
            environment = store.find_run(name).environment
    except RequestError as error:
        raise RequestError(
            f"{name!r} is no run in the store, no file and not now", hint="ajuste report without a name lists the runs"
        ) from error
    return _from_document(environment.get("inventory"), name, "it was measured before inventories were kept")


def _read(path: Path) -> Any:
    """The inventory that a file is, or has as results do. Raises RequestError."""
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{path} is not JSON: {error}", hint="ajuste inventory --json > FILE writes one") from error
    if isinstance(document, dict) and isinstance(document.get("environment"), dict):
        return document["environment"].get("inventory")
    return document


def _from_document(document: Any, name: str, otherwise: str) -> Inventory:
    if not isinstance(document, dict) or "inventory" not in document:
        raise RequestError(f"{name} has no inventory: {otherwise}")
    try:
        return Inventory.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RequestError(f"the inventory of {name} is malformed: {where}: {first['msg']}") from error
