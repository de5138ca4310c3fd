"""``ajuste tunables``: what the catalogue knows, and the values that it has here or in a guest."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Annotated, get_args

import typer
from rich.padding import Padding
from rich.table import Table

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import kernels
from ajuste.cli.command_line import Commands
from ajuste.cli.options import Json, example
from ajuste.kernel.spec import KernelToBuild, PackagedKernel, parse_spec
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import SERVICE_PREFIX, AttributeName, Tunable
from ajuste.report.console import Console
from ajuste.report.display import Activity

app = Commands(invoke_without_command=True)

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
        from ajuste.cli.tunable_sheet import list_here  # what asks a machine takes longer to load than the list

        list_here(as_json)
        return
    version = _version_of(kernel) if kernel else None
    known = [*catalogue().tunables.values(), *_of_services()]
    _list([t for t in known if version is None or t.place_in(version)], version, as_json)


@app.command()
@example("ajuste tunables search dirty pages")
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD…", help="Words to search for; all must match.")],
    as_json: Json = False,
) -> None:
    """Find settings by words in their names and explanations, best first.

    Example: $ ajuste tunables search dirty memory
    """
    of_services = {one.name.removeprefix(SERVICE_PREFIX): one for one in _of_services()}
    rest = [word for word in words if word.lower() not in ("service", "services")]
    found = catalogue().search(rest) if rest else []
    if len(rest) < len(words):
        found = [of_services[one.name] for one in found if one.name in of_services] if rest else [*of_services.values()]
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
    services = {one.name: one for one in _of_services()} if name.startswith(SERVICE_PREFIX) else {}
    tunable = services.get(name) or catalogue().find_tunable(name)
    from ajuste.cli.tunable_sheet import show_sheet

    show_sheet(tunable, kernel, cpus, as_json=as_json)


def _of_services() -> list[Tunable]:
    """The attributes of processes that services have, too: ``service.nice`` and the others."""
    tunables = catalogue().tunables
    return [
        tunables[name].model_copy(
            update={
                "name": f"{SERVICE_PREFIX}{name}",
                "title": _title(tunables[name].title),
                "what": re.sub(r"\b([Tt])he workload\b", r"\1he service", tunables[name].what),
                "subsystem": "service",
            }
        )
        for name in get_args(AttributeName)
    ]


def _title(title: str) -> str:
    """... of a service instead of the workload."""
    return title.replace("the workload", "a service") if "the workload" in title else f"{title} of a service"


# The list, for a terminal and for other programs.


def _list(found: list[Tunable], version: KernelVersion | None, as_json: bool, *, grouped: bool = True) -> None:
    """Print what was ``found``, with the paths in a kernel of ``version``; ``grouped`` by subsystem on a terminal."""
    if as_json:
        rows = [t.model_dump(mode="json") | {"kernels": kernels(t), "path": _path(t, version)} for t in found]
        print(json.dumps({"tunables": rows}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        for tunable in found:
            print("\t".join((tunable.subsystem, tunable.name, kernels(tunable), tunable.title)))
        return
    _print_list(found, console, grouped=grouped)


def _print_list(found: list[Tunable], console: Console, *, grouped: bool) -> None:
    """Name, title and kernels of each, under a heading for each subsystem if ``grouped`` (they come in that order)."""
    width = max(len(tunable.name) for tunable in found)
    if not grouped:
        console.print(_rows(found, width))
        return
    for subsystem, group in groupby(found, key=lambda tunable: tunable.subsystem):
        console.print(subsystem, style="bold")
        console.print(Padding(_rows(list(group), width), (0, 0, 1, 2)))
    console.print("ajuste tunables show NAME explains one, with its value; --kernel K shows it for that kernel")


def _rows(found: list[Tunable], width: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=width)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for tunable in found:
        table.add_row(tunable.name, tunable.title, kernels(tunable))
    return table


def _path(tunable: Tunable, version: KernelVersion | None) -> str | None:
    where = tunable.place_in(version) if version else None
    return (where.path or None) if where else None


def _version_of(kernel: str) -> KernelVersion:
    """Without fetching anything where the spec itself says it."""
    spec = parse_spec(kernel)
    if isinstance(spec, PackagedKernel) and "." in (spec.release or spec.version):
        return KernelVersion.parse(spec.release or spec.version)
    if isinstance(spec, KernelToBuild):
        from ajuste.kernel.building.build import version_to_build

        return version_to_build(spec, home())
    from ajuste.kernel.fetch import fetch_kernel

    with Activity() as activity:
        return fetch_kernel(kernel, home(), say=activity.say).version
