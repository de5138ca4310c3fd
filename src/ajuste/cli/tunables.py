"""``ajuste tunables``: what the catalogue knows, and the values that it has here or in a guest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import initial_value, kernels
from ajuste.cli.options import Json, example
from ajuste.cli.tunable_sheet import TunableSheet, print_list, print_sheet
from ajuste.executor.executor import Executor
from ajuste.executor.guest.guest import GuestExecutor
from ajuste.executor.guest.initramfs import GuestFiles
from ajuste.executor.host.current import Current, Here, current_values, tunables_here
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.machine import HostMachine
from ajuste.kernel.building.specified import version_to_build
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.spec import KernelToBuild, PackagedKernel, parse_spec
from ajuste.machine.home import home
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.model.wording import visible_line
from ajuste.report.console import Console

# The list of ``ajuste tunables --here``: every setting of this machine with its value.


def list_here(found: Sequence[Here], as_json: bool) -> None:
    """A document, a line for each with tabs between, or a table in a terminal: name, value, why it is locked."""
    if as_json:
        print(json.dumps({"tunables": [here_document(here) for here in found]}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        for here in found:
            print("\t".join((here.tunable.name, shown_value(here), reason(here))))
        return
    for subsystem, group in groupby(found, key=lambda here: here.tunable.subsystem):
        console.print(subsystem, style="bold")
        console.print(Padding(_table(list(group)), (0, 0, 1, 2)))


def here_document(here: Here) -> dict[str, str | None]:
    """One of them for a program: ``value`` is as the kernel shows it, ``locked`` says why it cannot be changed."""
    return {
        "name": here.tunable.name,
        "subsystem": here.tunable.subsystem,
        "value": here.current.value,
        "unit": here.tunable.unit,
        "path": here.current.path or None,
        "problem": here.current.problem or None,
        "locked": here.locked or None,
    }


def shown_value(here: Here) -> str:
    """The value on one line; empty if there is none."""
    return visible_line(" ".join((here.current.value or "").split()))


def reason(here: Here) -> str:
    """Why there is no value, or why it cannot be changed; empty if all is well."""
    if here.current.value is None:
        return visible_line(here.current.problem)
    return f"locked: {visible_line(here.locked)}" if here.locked else ""


def _table(found: list[Here]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for here in found:
        told = Text(shown_value(here), style="bold")
        if reason(here):
            told += Text(f"  {reason(here)}" if told else reason(here), style="yellow")
        table.add_row(here.tunable.name, told)
    return table


app = typer.Typer(invoke_without_command=True)

Kernel = Annotated[
    str | None, typer.Option("--kernel", metavar="K", help="debian:5.10, debian:6.12, … or path:VMLINUZ.")
]


@app.callback()
@example("ajuste tunables --here", "ajuste tunables --kernel debian:6.12")
def tunables(
    context: typer.Context,
    as_json: Json = False,
    kernel: Kernel = None,
    here: Annotated[
        bool, typer.Option("--here", help="List the tunables of this machine, with their values and what locks them.")
    ] = False,
) -> None:
    """List the settings that Ajuste knows, or those of kernel K; `show NAME` explains one.

    Example: $ ajuste tunables --here
    """
    if context.invoked_subcommand is not None:
        if as_json or kernel or here:
            command = f"ajuste tunables {context.invoked_subcommand}"
            raise RequestError(f"write the options after {context.invoked_subcommand}", hint=f"see {command} --help")
        return
    if here and kernel:
        raise RequestError("--here and --kernel are mutually exclusive")
    if here:
        with HostExecutor() as target:
            list_here(tunables_here(target, catalogue(), list(catalogue().tunables.values()), HostMachine()), as_json)
        return
    version = _version(kernel) if kernel else None
    _list([t for t in catalogue().tunables.values() if version is None or t.place_in(version)], version, as_json)


@app.command()
@example("ajuste tunables search dirty pages")
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD…", help="Words to search for; all must match.")],
    as_json: Json = False,
) -> None:
    """Find settings by words in their names and explanations, best first.

    Example: $ ajuste tunables search dirty memory
    """
    found = catalogue().search(words)
    if not found:
        raise RequestError(f"no tunable matches {' '.join(words)}", hint="list all with ajuste tunables")
    _list(found, None, as_json, grouped=False)


@app.command()
@example("ajuste tunables show vm.swappiness", "ajuste tunables show sched_min_granularity_ns --kernel debian:5.10")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tunable; for one instance, NAME[cpu0].")],
    kernel: Kernel = None,
    cpus: Annotated[int, typer.Option("--cpus", min=1, max=16, help="Number of CPUs of the guest.")] = 1,
    as_json: Json = False,
) -> None:
    """Explain one setting, with its value on this machine, or in a guest with the kernel K.

    Example: $ ajuste tunables show 'net.gro[lo]'
    """
    tunable = catalogue().find_tunable(name)
    sheet = _guest(tunable, kernel, cpus) if kernel else _host(tunable)
    if as_json:
        print(json.dumps(_document(sheet), indent=2, ensure_ascii=False))
    else:
        print_sheet(sheet, Console())


def _host(tunable: Tunable) -> TunableSheet:
    try:
        with HostExecutor() as target:
            found = tunables_here(target, catalogue(), [tunable], HostMachine())
            return _sheet(found[0].tunable, target, "this machine", of=tunable, found=found)
    except AjusteError as error:
        # The explanation is worth showing where this machine cannot be asked.
        return TunableSheet(
            tunable=tunable, on="this machine", current=Current(problem=f"not readable: {error.message}")
        )


def _guest(tunable: Tunable, kernel: str, cpus: int) -> TunableSheet:
    with ExitStack() as stack:
        say = _say(stack)
        image = fetch_kernel(kernel, home(), say=say)
        clock: Any = "virtual" if cpus == 1 else "wall"
        guest = GuestExecutor(image, clock=clock, cpus=cpus, files=GuestFiles(), home=home(), say=say)
        say(f"booting {kernel}")
        return _sheet(catalogue().example(tunable), stack.enter_context(guest), kernel, of=tunable)


def _sheet(asked: Tunable, target: Executor, on: str, *, of: Tunable, found: Sequence[Here] = ()) -> TunableSheet:
    """The sheet ``of`` an entry with the value of ``asked``, or with all that was ``found`` here."""
    version = KernelVersion.parse(target.hello.kernel)
    other = None if of.place_in(version) else catalogue().counterpart(of, version)
    wanted = [*(() if found else (asked,)), *((catalogue().example(other),) if other else ())]
    values = current_values(target, wanted) | {here.tunable.name: here.current for here in found}
    return TunableSheet(
        tunable=of,
        on=on,
        kernel=target.hello.kernel,
        cpus=target.hello.cpus,
        read_as=asked.name,
        current=values[asked.name],
        initial=initial_value(of, version, target.hello.cpus),
        instead=(other, values[catalogue().example(other).name]) if other else None,
        found=tuple(found),
    )


def _document(sheet: TunableSheet) -> dict[str, Any]:
    instead = None
    if sheet.instead:
        other, current = sheet.instead
        instead = {"title": other.title, "unit": other.unit, **_value(other.name, current)}
    return {
        "tunable": sheet.tunable.model_dump(mode="json"),
        "kernels": kernels(sheet.tunable),
        "on": sheet.on,
        "kernel": sheet.kernel,
        "cpus": sheet.cpus,
        **_value(sheet.read_as, sheet.current),
        "initial": sheet.initial,
        "instead": instead,
        "locked": sheet.locked or None,
        "instances": [here_document(here) for here in sheet.found] if len(sheet.found) > 1 else None,
    }


def _value(name: str, current: Current) -> dict[str, str | None]:
    return {"name": name, "value": current.value, "problem": current.problem or None, "path": current.path or None}


def _list(found: list[Tunable], version: KernelVersion | None, as_json: bool, *, grouped: bool = True) -> None:
    if as_json:
        rows = [t.model_dump(mode="json") | {"kernels": kernels(t), "path": _path(t, version)} for t in found]
        print(json.dumps({"tunables": rows}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        for tunable in found:
            print("\t".join((tunable.subsystem, tunable.name, kernels(tunable), tunable.title)))
        return
    print_list(found, console, grouped=grouped)


def _path(tunable: Tunable, version: KernelVersion | None) -> str | None:
    where = tunable.place_in(version) if version else None
    return (where.path or None) if where else None


def _version(kernel: str) -> KernelVersion:
    """Without fetching anything where the spec itself says it."""
    spec = parse_spec(kernel)
    if isinstance(spec, PackagedKernel) and "." in (spec.release or spec.version):
        return KernelVersion.parse(spec.release or spec.version)
    if isinstance(spec, KernelToBuild):
        return version_to_build(spec, home())
    with ExitStack() as stack:
        return fetch_kernel(kernel, home(), say=_say(stack)).version


def _say(stack: ExitStack) -> Any:
    """Shows on stderr what happens now; nothing remains of it in the end, and nothing is shown in a log."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return lambda _: None
    return stack.enter_context(console.telling())
