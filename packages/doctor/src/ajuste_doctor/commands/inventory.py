"""``ajuste inventory``: what this machine is, and what differs between two."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError

from ajuste.cli.options import Json, example
from ajuste.machine.home import home
from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.model.base import first_problem
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError
from ajuste.model.wording import count_of, visible_line
from ajuste.report.console import Console
from ajuste.report.document import Fact, Facts, Item, Listing, Paragraph, Report, Section, Tone
from ajuste.report.inventory_page import area_title, inventory_page, value_text
from ajuste.report.terminal import print_report
from ajuste.study.problem import nearest
from ajuste_doctor.inventories import InventoryComparison, InventoryDifference, compare_inventories

_MOST_BYTES: Final = 64 << 20


@example("ajuste inventory", "ajuste inventory --json > here.json", "ajuste inventory --diff here.json now")
def inventory(
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Show differences; each a run, a file of --json, or now (this machine)."),
    ] = None,
    area: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Show only this area, such as CPU or Disks (repeatable).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what this machine is: processor, kernel, memory, disks, mounts, network, limits.

    Names of the machine and its users, serial numbers and addresses are never read.
    """
    if area and (as_json or diff):
        raise RequestError(f"--area conflicts with {'--diff' if diff else '--json'}", hint="remove one of them")
    console = Console(file=sys.stdout)
    if diff is None:
        taken = take_inventory(programs=True)
        if as_json:
            typer.echo(taken.model_dump_json(indent=2))
        else:
            print_report(inventory_report(taken, area or ()), console)
        return
    a, b = diff
    comparison = compare_inventories(_inventory(a), _inventory(b))
    if as_json:
        document = {"a": a, "b": b, **comparison.model_dump(mode="json")}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print_report(comparison_report(comparison, a, b), console)


def _inventory(name: str) -> Inventory:
    from ajuste.store.store import Store

    if name == "now":
        return take_inventory(programs=True)
    path = Path(name)
    if path.is_file():
        return _from_document(_read(path), name, "it is not an inventory; make one with ajuste inventory --json > FILE")
    try:
        with Store(home().store_url) as store:
            environment = store.find_run(name).environment
    except RequestError as error:
        raise RequestError(
            f"{name!r} not found; expected a run in the store, a file or now", hint="list runs with ajuste report"
        ) from error
    return _from_document(environment.get("inventory"), name, "it is older than inventories; compare a newer run")


def _read(path: Path) -> Any:
    # A file is an inventory, or results that contain one.
    try:
        with open_given(path) as file:
            document = json.loads(file.read(_MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"{path} is not JSON: {error}", hint="write one with ajuste inventory --json > FILE"
        ) from error
    if isinstance(document, dict) and isinstance(document.get("environment"), dict):
        return document["environment"].get("inventory")
    return document


def _from_document(document: Any, name: str, otherwise: str) -> Inventory:
    if not isinstance(document, dict) or "inventory" not in document:
        raise RequestError(f"{name} has no inventory: {otherwise}", hint="give a run, a file of --json or now")
    try:
        return Inventory.model_validate(document)
    except ValidationError as error:
        raise RequestError(
            f"the inventory of {name} is malformed: {first_problem(error)}",
            hint="write it again with ajuste inventory --json > FILE",
        ) from error


# Inventories as reports.


_MARKS: Final[dict[str, tuple[str, Tone]]] = {"high": ("!!", "bad"), "medium": ("! ", "warning"), "low": ("  ", "dim")}
_MEANINGS: Final = "!! can change results, ! matters for some workloads, unmarked rarely matters"


def inventory_report(inventory: Inventory, areas: Sequence[str] = ()) -> Report:
    """Return the report of an inventory: a section for each area, a line for each fact or device.

    ``areas`` are the titles of the sections to show, in upper or lower case; all if empty.

    Raises:
        RequestError: An area is not found.
    """
    page = {area.title.casefold(): area for area in inventory_page(inventory)}
    titles = [area.title for area in page.values()]
    wanted = {name.casefold() for name in areas}
    for name in areas:
        if name.casefold() not in page:
            raise RequestError(
                f"--area: area {visible_line(name)!r} not found{nearest(name, titles)}",
                hint=f"choose one of {', '.join(titles)}",
            )
    sections = (
        Section(area.title, (Facts(area.facts),)) for title, area in page.items() if not wanted or title in wanted
    )
    return Report("What this machine is", "", tuple(sections))


def comparison_report(comparison: InventoryComparison, a: str, b: str) -> Report:
    """Return the report of the differences by area, the most important first."""
    differences = comparison.differences
    if not differences:
        headline = f"{visible_line(a)} and {visible_line(b)} do not differ."
    else:
        headline = f"{count_of(len(differences), 'difference')}: {visible_line(a)} → {visible_line(b)}"
    areas = dict.fromkeys(difference.area for difference in differences)
    sections = [Section(area_title(area), (Listing(tuple(_items(differences, area))),)) for area in areas]
    if comparison.not_compared:
        reasons = dict.fromkeys(lacking.reason for lacking in comparison.not_compared)
        facts = (
            Fact(
                reason,
                ", ".join(lacking.path for lacking in comparison.not_compared if lacking.reason == reason),
                tone="dim",
            )
            for reason in reasons
        )
        sections.append(Section("Not compared", (Facts(tuple(facts)),)))
    lead = (Paragraph(_MEANINGS, "dim"),) if differences else ()
    return Report(headline, headline, tuple(sections), lead=lead)


def _items(differences: Sequence[InventoryDifference], area: str) -> Iterator[Item]:
    # A reason that several differences share is printed once.
    why = ""
    for difference in (difference for difference in differences if difference.area == area):
        mark, tone = _MARKS[difference.importance]
        name = difference.field or difference.area
        last = name.rpartition(".")[2]
        before, after = value_text(last, difference.a), value_text(last, difference.b)
        more = () if difference.why == why else (difference.why,)
        yield Item(name, f"{before} → {after}", more=more, mark=mark, tone=tone)
        why = difference.why
