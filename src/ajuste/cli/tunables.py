"""``ajuste tunables``: list and explain the catalogue's tunables, with their values here or in a guest."""

from __future__ import annotations

import re
from typing import Annotated, get_args

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.command_line import Commands
from ajuste.cli.options import Json, example
from ajuste.model.error import RequestError
from ajuste.model.tunable import SERVICE_PREFIX, AttributeName, Tunable

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
        from ajuste.cli.tunable_sheet import list_here  # the executors take longer to load than the list

        list_here(as_json)
        return
    from ajuste.cli.tunable_list import list_tunables, version_of  # what is not found needs neither

    version = version_of(kernel) if kernel else None
    known = [*catalogue().tunables.values(), *_of_services()]
    list_tunables([t for t in known if version is None or t.place_in(version)], version, as_json)


@app.command()
@example("ajuste tunables search dirty pages")
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD…", help="Words to search for; all must match.")],
    as_json: Json = False,
) -> None:
    """Find settings by words in their names and explanations, best first.

    Example: $ ajuste tunables search dirty memory
    """
    of_services = {tunable.name.removeprefix(SERVICE_PREFIX): tunable for tunable in _of_services()}
    rest = [word for word in words if word.lower() not in ("service", "services")]
    matches = catalogue().search(rest) if rest else []
    if len(rest) < len(words):
        matches = (
            [of_services[tunable.name] for tunable in matches if tunable.name in of_services]
            if rest
            else [*of_services.values()]
        )
    if not matches:
        raise RequestError(f"no tunable matches {' '.join(words)}", hint="list all with ajuste tunables")
    from ajuste.cli.tunable_list import list_tunables

    list_tunables(matches, None, as_json, grouped=False)


@app.command()
@example("ajuste tunables show vm.swappiness", "ajuste tunables show sched_min_granularity_ns --kernel debian:5.10")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tunable; for one instance, NAME[cpu0].")],
    kernel: Kernel = None,
    cpus: Annotated[
        int, typer.Option("--guest-cpus", "--cpus", min=1, max=16, help="Number of CPUs of the guest.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Explain one setting, with its value on this machine, or in a guest with the kernel K.

    Example: $ ajuste tunables show 'net.gro[lo]'
    """
    services = {tunable.name: tunable for tunable in _of_services()} if name.startswith(SERVICE_PREFIX) else {}
    if name.startswith(SERVICE_PREFIX) and name not in services:
        raise RequestError(
            f"{name}: the catalogue does not explain the settings of servers",
            hint=f"see the server's own manual; vary it with ajuste compare --set {name}=LEVEL,LEVEL",
        )
    tunable = services.get(name) or catalogue().find_tunable(name)
    from ajuste.cli.tunable_sheet import show_sheet

    show_sheet(tunable, kernel, cpus, as_json=as_json)


def _of_services() -> list[Tunable]:
    # Services have the process attributes of workloads, as `service.nice` and so on.
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
    return title.replace("the workload", "a service") if "the workload" in title else f"{title} of a service"
