"""What is known of a tunable, for people: the list of many and the sheet of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import ALWAYS_ON, kernels, kind, location, span
from ajuste.executor.host.current import Current, Here
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import location_words
from ajuste.model.tunable import DEVICE_KINDS, WORKLOAD_KINDS, Marker, Tunable, Where, marker_words
from ajuste.model.wording import visible_line

_SHOWN = 16
"""Instances whose values are shown."""


@dataclass(frozen=True)
class TunableSheet:
    """A tunable with what was found ``on`` a machine. ``read_as`` is the tunable or the instance of it that was read;
    ``instead`` what the kernel has in its place, ``initial`` the value at boot where it is known. ``found`` are all
    instances of this machine.
    """

    tunable: Tunable
    on: str
    kernel: str = ""
    cpus: int = 0
    read_as: str = ""
    current: Current = field(default_factory=Current)
    initial: str | None = None
    instead: tuple[Tunable, Current] | None = None
    found: tuple[Here, ...] = ()

    @property
    def locked(self) -> str:
        """Why it cannot be changed on this machine, where it has a value; empty if nothing is in the way."""
        locks = [here.locked for here in self.found if here.tunable.name == self.read_as]
        return locks[0] if locks and self.current.value is not None else ""


def print_list(found: list[Tunable], console: Console, *, grouped: bool) -> None:
    """Name, title and kernels of each, under a heading for each subsystem if ``grouped`` (they come in that order)."""
    width = max(len(tunable.name) for tunable in found)
    if not grouped:
        console.print(_rows(found, width))
        return
    for subsystem, group in groupby(found, key=lambda tunable: tunable.subsystem):
        console.print(subsystem, style="bold")
        console.print(Padding(_rows(list(group), width), (0, 0, 1, 2)))
    console.print("ajuste tunables show NAME explains one, with its value; --kernel K shows it for that kernel")


def print_sheet(sheet: TunableSheet, console: Console) -> None:
    """All of the entry, with the value on top."""
    tunable = sheet.tunable
    console.print(Text(tunable.name, style="bold") + Text(f"  {tunable.title}"))
    console.print(Padding(tunable.what, (1, 0, 1, 2)))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, text in _lines(sheet):
        table.add_row(label, text)
    console.print(table)


def _rows(found: list[Tunable], width: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=width)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for tunable in found:
        table.add_row(tunable.name, tunable.title, kernels(tunable))
    return table


def _lines(sheet: TunableSheet) -> list[tuple[str, RenderableType]]:
    tunable = sheet.tunable
    lines: list[tuple[str, RenderableType]] = [("Value", _value(sheet))]
    lines += [("", _other(here)) for here in sheet.found[1:_SHOWN]]
    if len(sheet.found) > _SHOWN:
        lines.append(("", Text(f"and {len(sheet.found) - _SHOWN} more", style="dim")))
    if sheet.locked:
        lines.append(("Locked", Text(sheet.locked, style="yellow")))
    if sheet.instead:
        lines.append(("Instead", _instead(tunable, *sheet.instead)))
    default = tunable.default + (
        f"; {_with_unit(sheet.initial, tunable)} with {_cpus(sheet.cpus)}" if sheet.initial and tunable.scaled else ""
    )
    lines += [
        ("Default", Text(default)),
        ("Values", Text(_values(tunable))),
        ("Kernels", Text(kernels(tunable))),
    ]
    lines += [("Where" if not number else "", _place(where)) for number, where in enumerate(tunable.where)]
    if tunable.instances:
        lines.append(("Several", Text(_several(tunable))))
    if tunable.risk != "none":
        words = {"performance": "can slow the machine down", "hang": "can hang the machine"}[tunable.risk]
        lines.append(("Risk", Text(f"{words}. {tunable.risk_note}".rstrip(), style="yellow")))
    for label, text in (
        ("Removed", tunable.removed),
        ("Successor", f"{tunable.successor}, related but different" if tunable.successor else ""),
        ("Predecessor", f"{tunable.predecessor}, related but different" if tunable.predecessor else ""),
        ("See also", ", ".join(tunable.see)),
        ("Source", tunable.source),
    ):
        if text:
            lines.append((label, Text(text)))
    return lines


def _value(sheet: TunableSheet) -> Text:
    current = sheet.current
    if any(where.kind in WORKLOAD_KINDS for where in sheet.tunable.where):
        return Text(current.problem)
    machine = f"on {sheet.on}" + (f" (Linux {sheet.kernel}, {_cpus(sheet.cpus)})" if sheet.kernel else "")
    if current.value is None:
        return Text(current.problem, style="yellow") + Text(f"\n{machine}", style="dim")
    shown = _with_unit(current.value, sheet.tunable) if current.value else "empty: not supported by this machine"
    which = f"{sheet.read_as} " if sheet.read_as != sheet.tunable.name else ""
    return Text(shown, style="bold") + Text(f"  {which}{machine}", style="dim")


def _other(here: Here) -> Text:
    value = here.current.problem if here.current.value is None else _with_unit(here.current.value, here.tunable)
    return Text(visible_line(value), style="bold") + Text(f"  {here.tunable.name}", style="dim")


def _instead(tunable: Tunable, other: Tunable, current: Current) -> Text:
    value = current.problem if current.value is None else _with_unit(current.value, other)
    kin = "successor" if tunable.successor else "counterpart"
    return Text(f"{other.name} = {value}", style="bold") + Text(
        f"\nits {kin} in this kernel, a related but different tunable: {other.title}"
    )


def _several(tunable: Tunable) -> str:
    parts = catalogue().parts
    return f"one for each {kind(parts, tunable)}, such as {catalogue().example(tunable).name}"


def _place(where: Where) -> RenderableType:
    text = _words(where)
    if where.flag:
        text += f", the word {where.flag} or NO_{where.flag}"
    told = [span(where)]
    if where.needs:
        told.append("needs " + " and ".join(_option(option, where) for option in where.needs.split()))
    if where.note:
        told.append(where.note)
    return Group(Text(text), Padding(Text("; ".join(told), style="dim"), (0, 0, 0, 2)))


def _words(where: Where) -> str:
    if where.path:
        return where.path
    if where.kind in DEVICE_KINDS and not where.device:
        where = where.of({"interface": "INTERFACE"})
    place = location(where)
    return marker_words(place) if isinstance(place, Marker) else location_words(place)


def _option(option: str, where: Where) -> str:
    freed = ALWAYS_ON.get(option)
    if freed and (where.before is None or freed < KernelVersion.parse(where.before)):
        return f"CONFIG_{option} (before {freed})"
    return f"CONFIG_{option}"


def _values(tunable: Tunable) -> str:
    if tunable.type in ("cpu-list", "cpu-mask"):
        mask = ", or a mask such as 0xf" if tunable.type == "cpu-mask" else ""
        return f"a list of CPUs, such as 0 or 0,2 or 0-3{mask}"
    if tunable.type == "choice":
        return ", ".join(tunable.choices)
    special = [f"{value} = {meaning}" for value, meaning in tunable.special.items()]
    if tunable.type == "boolean":
        return " or ".join(tunable.choices or ("0", "1")) + " (off, on)"
    words = f"{tunable.minimum} … {tunable.maximum}{' ' + tunable.unit if tunable.unit else ''}"
    if tunable.type == "integers":
        words = f"{tunable.count or 'several'} numbers separated by blanks, each {words}"
    return "; ".join([words, *special])


def _with_unit(value: str, tunable: Tunable) -> str:
    return f"{value} {tunable.unit}" if tunable.unit and tunable.type in ("integer", "integers") else value


def _cpus(number: int) -> str:
    return "1 CPU" if number == 1 else f"{number} CPUs"
