"""The list of tunables, for a terminal, for other programs and as a document."""

from __future__ import annotations

import json
from itertools import groupby

from rich.padding import Padding
from rich.table import Table

from ajuste.catalogue.place import kernels
from ajuste.machine.home import home
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.report.console import Activity, Console


def list_tunables(
    tunables: list[Tunable], version: KernelVersion | None, as_json: bool, *, grouped: bool = True
) -> None:
    """Print ``tunables`` with their paths in a kernel of ``version``; on a terminal ``grouped`` by subsystem."""
    if as_json:
        rows = [t.model_dump(mode="json") | {"kernels": kernels(t), "path": _path(t, version)} for t in tunables]
        print(json.dumps({"tunables": rows}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        for tunable in tunables:
            print("\t".join((tunable.subsystem, tunable.name, kernels(tunable), tunable.title)))
        return
    _print_list(tunables, console, grouped=grouped)


def _print_list(tunables: list[Tunable], console: Console, *, grouped: bool) -> None:
    # `groupby` relies on the catalogue's order, which is by subsystem.
    width = max(len(tunable.name) for tunable in tunables)
    if not grouped:
        console.print(_rows(tunables, width))
        return
    for subsystem, group in groupby(tunables, key=lambda tunable: tunable.subsystem):
        console.print(subsystem, style="bold")
        console.print(Padding(_rows(list(group), width), (0, 0, 1, 2)))
    console.print("ajuste tunables show NAME explains one, with its value; --kernel K shows it for that kernel")


def _rows(tunables: list[Tunable], width: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=width)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for tunable in tunables:
        table.add_row(tunable.name, tunable.title, kernels(tunable))
    return table


def _path(tunable: Tunable, version: KernelVersion | None) -> str | None:
    where = tunable.place_in(version) if version else None
    return (where.path or None) if where else None


def version_of(kernel: str) -> KernelVersion:
    """Return the version of ``kernel``; fetch the kernel only where its spec does not give it."""
    from ajuste.run.testbed import RunOptions, kernel_testbed  # the executors take longer to load than the list

    with Activity() as activity:
        return kernel_testbed(RunOptions(home(), say=activity.say)).kernel_version(kernel)
