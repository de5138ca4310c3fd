"""Tunables with the values that they have on this machine or in a guest: the sheet of one and the list of all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import ALWAYS_ON, initial_value, kernels, kind, location, span
from ajuste.catalogue.servers import ANY_TEXT
from ajuste.executor.host.availability import Current, Here, HostMachine, current_values, tunables_here
from ajuste.executor.host.host import HostExecutor
from ajuste.machine.home import home
from ajuste.model.cause import CAUSES
from ajuste.model.error import AjusteError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import location_words
from ajuste.model.tunable import DEVICE_KINDS, RISKS, WORKLOAD_KINDS, Marker, Tunable, Where, marker_words
from ajuste.model.wording import count_of, visible_line
from ajuste.report.console import Activity, Console
from ajuste.run.testbed import RunOptions, kernel_testbed
from ajuste.study.target import TargetTable

if TYPE_CHECKING:
    from ajuste.executor.executor import Executor

# Maximum number of instances whose values are shown.
_SHOWN = 16


@dataclass(frozen=True)
class TunableSheet:
    """A tunable with its value ``on`` a machine.

    ``read_as`` names the tunable or the instance of it that was read. ``instead`` is the tunable that this kernel has
    in its place, ``initial`` the value at boot if known. ``instances`` are all of this machine.
    """

    tunable: Tunable
    on: str
    kernel: str = ""
    cpus: int = 0
    read_as: str = ""
    current: Current = field(default_factory=Current)
    initial: str | None = None
    instead: tuple[Tunable, Current] | None = None
    instances: tuple[Here, ...] = ()

    @property
    def locked(self) -> str:
        """Return why the tunable cannot be changed on this machine; empty if it can, or has no value."""
        locks = [here.locked for here in self.instances if here.tunable.name == self.read_as]
        return locks[0] if locks and self.current.value is not None else ""


# The sheet of one tunable.


def show_sheet(tunable: Tunable, kernel: str | None, cpus: int, *, as_json: bool) -> None:
    """Print ``tunable`` with its value on this machine, or in a guest with ``kernel`` and so many ``cpus``."""
    sheet = _guest(tunable, kernel, cpus) if kernel else _host(tunable)
    if as_json:
        print(json.dumps(_document(sheet), indent=2, ensure_ascii=False))
    else:
        _print_sheet(sheet, Console())


def _host(tunable: Tunable) -> TunableSheet:
    try:
        with HostExecutor() as target:
            instances = tunables_here(target, catalogue(), [tunable], HostMachine())
            return _sheet(instances[0].tunable, target, "this machine", of=tunable, instances=instances)
    except AjusteError as error:
        # The explanation is useful even where this machine's values cannot be read.
        return TunableSheet(
            tunable=tunable, on="this machine", current=Current(problem=f"not readable: {error.message}")
        )


def _guest(tunable: Tunable, kernel: str, cpus: int) -> TunableSheet:
    with Activity() as activity:
        target = TargetTable(kernel=kernel, clock="virtual" if cpus == 1 else "wall", cpus=cpus)
        machine = kernel_testbed(RunOptions(home(), say=activity.say)).bare(target)
        activity.say(f"booting {kernel}")
        with machine as guest:
            return _sheet(catalogue().example(tunable), guest, kernel, of=tunable)


def _sheet(
    instance: Tunable, target: Executor, on: str, *, of: Tunable, instances: Sequence[Here] = ()
) -> TunableSheet:
    # Values of `instances` were read before; without them the target reads that of `instance`.
    version = KernelVersion.parse(target.hello.kernel)
    other = None if of.place_in(version) else catalogue().counterpart(of, version)
    wanted = [*(() if instances else (instance,)), *((catalogue().example(other),) if other else ())]
    values = current_values(target, wanted) | {here.tunable.name: here.current for here in instances}
    return TunableSheet(
        tunable=of,
        on=on,
        kernel=target.hello.kernel,
        cpus=target.hello.cpus,
        read_as=instance.name,
        current=values[instance.name],
        initial=initial_value(of, version, target.hello.cpus),
        instead=(other, values[catalogue().example(other).name]) if other else None,
        instances=tuple(instances),
    )


def _document(sheet: TunableSheet) -> dict[str, Any]:
    instead = None
    if sheet.instead:
        other, current = sheet.instead
        instead = {"title": other.title, "unit": other.unit, **_value_document(other.name, current)}
    return {
        "tunable": sheet.tunable.model_dump(mode="json"),
        "kernels": kernels(sheet.tunable),
        "on": sheet.on,
        "kernel": sheet.kernel,
        "cpus": sheet.cpus,
        **_value_document(sheet.read_as, sheet.current),
        "initial": sheet.initial,
        "instead": instead,
        "locked": sheet.locked or None,
        "instances": [_here_document(here) for here in sheet.instances] if len(sheet.instances) > 1 else None,
    }


def _value_document(name: str, current: Current) -> dict[str, str | None]:
    return {"name": name, "value": current.value, "problem": current.problem or None, "path": current.path or None}


def _print_sheet(sheet: TunableSheet, console: Console) -> None:
    tunable = sheet.tunable
    console.print(Text(tunable.name, style="bold") + Text(f"  {tunable.title}"))
    console.print(Padding(tunable.what, (1, 0, 1, 2)))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, text in _lines(sheet):
        table.add_row(label, text)
    console.print(table)


def _lines(sheet: TunableSheet) -> list[tuple[str, RenderableType]]:
    tunable = sheet.tunable
    lines: list[tuple[str, RenderableType]] = [("Value", _value(sheet))]
    lines += [("", _other(here)) for here in sheet.instances[1:_SHOWN]]
    if len(sheet.instances) > _SHOWN:
        lines.append(("", Text(f"and {len(sheet.instances) - _SHOWN} more", style="dim")))
    if sheet.locked:
        lines.append(("Locked", Text(sheet.locked, style="yellow")))
    if sheet.instead:
        other, current = sheet.instead
        value = current.problem if current.value is None else _with_unit(current.value, other)
        relation = "successor" if tunable.successor else "counterpart"
        about = f"\nits {relation} in this kernel, a related but different tunable: {other.title}"
        lines.append(("Instead", Text(f"{other.name} = {value}", style="bold") + Text(about)))
    default = tunable.default + (
        f"; {_with_unit(sheet.initial, tunable)} with {count_of(sheet.cpus, 'CPU')}"
        if sheet.initial and tunable.scaled
        else ""
    )
    lines += [
        ("Default", Text(default)),
        ("Values", Text(_values(tunable))),
        ("Kernels", Text(kernels(tunable))),
    ]
    lines += [("Where" if not number else "", _place(where)) for number, where in enumerate(tunable.where)]
    conditions = catalogue().relevance_conditions(tunable)
    if tunable.matters_if:
        lines.append(("Matters", Text(f"if {', and '.join(condition.met for condition in conditions)}")))
    if tunable.acts_on:
        lines.append(("Acts on", Text("; ".join(CAUSES[cause].title for cause in tunable.acts_on))))
    if tunable.tries:
        lines.append(("Worth trying", Text(", ".join(tunable.tries))))
    if tunable.instances:
        each, example = kind(catalogue().parts, tunable), catalogue().example(tunable).name
        lines.append(("Several", Text(f"one for each {each}, such as {example}")))
    if tunable.risk != "none":
        lines.append(("Risk", Text(f"{RISKS[tunable.risk]}. {tunable.risk_note}".rstrip(), style="yellow")))
    counters = dict.fromkeys(name for condition in conditions for name in condition.counters)
    for label, text in (
        ("Counters", ", ".join(counters)),
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
    machine = f"on {sheet.on}" + (f" (Linux {sheet.kernel}, {count_of(sheet.cpus, 'CPU')})" if sheet.kernel else "")
    if current.value is None:
        return Text(current.problem, style="yellow") + Text(f"\n{machine}", style="dim")
    text = _with_unit(current.value, sheet.tunable) if current.value else "empty: not supported by this machine"
    which = f"{sheet.read_as} " if sheet.read_as != sheet.tunable.name else ""
    return Text(text, style="bold") + Text(f"  {which}{machine}", style="dim")


def _other(here: Here) -> Text:
    value = here.current.problem if here.current.value is None else _with_unit(here.current.value, here.tunable)
    return Text(visible_line(value), style="bold") + Text(f"  {here.tunable.name}", style="dim")


def _place(where: Where) -> RenderableType:
    text = _words(where)
    if where.flag:
        text += f", the word {where.flag} or NO_{where.flag}"
    notes = [span(where)]
    if where.needs:
        notes.append("needs " + " and ".join(_option(option, where) for option in where.needs.split()))
    if where.note:
        notes.append(where.note)
    return Group(Text(text), Padding(Text("; ".join(notes), style="dim"), (0, 0, 0, 2)))


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
    if tunable.type == "text":
        return ANY_TEXT
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


# ``ajuste tunables --here``: every tunable of this machine with its value.


def list_here(as_json: bool) -> None:
    """Print every tunable of this machine: name, value, and why it is locked."""
    with HostExecutor() as target:
        instances = tunables_here(target, catalogue(), list(catalogue().tunables.values()), HostMachine())
    if as_json:
        print(json.dumps({"tunables": [_here_document(here) for here in instances]}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        for here in instances:
            print("\t".join((here.tunable.name, _shown_value(here), _reason(here))))
        return
    for subsystem, group in groupby(instances, key=lambda here: here.tunable.subsystem):
        console.print(subsystem, style="bold")
        console.print(Padding(_here_table(list(group)), (0, 0, 1, 2)))


def _here_document(here: Here) -> dict[str, str | None]:
    return {
        "name": here.tunable.name,
        "subsystem": here.tunable.subsystem,
        "value": here.current.value,
        "unit": here.tunable.unit,
        "path": here.current.path or None,
        "problem": here.current.problem or None,
        "locked": here.locked or None,
    }


def _shown_value(here: Here) -> str:
    return visible_line(" ".join((here.current.value or "").split()))


def _reason(here: Here) -> str:
    if here.current.value is None:
        return visible_line(here.current.problem)
    return f"locked: {visible_line(here.locked)}" if here.locked else ""


def _here_table(instances: list[Here]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for here in instances:
        text = Text(_shown_value(here), style="bold")
        if _reason(here):
            text += Text(f"  {_reason(here)}" if text else _reason(here), style="yellow")
        table.add_row(here.tunable.name, text)
    return table
