"""``ajuste scaling``: how much faster a command is on more CPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import Machines
from ajuste.cli.measuring import measure
from ajuste.cli.options import Only, example, option, spread
from ajuste.cli.showing import Showing, command_line
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import Place, RequestError
from ajuste.run.experiment import unless_going_on
from ajuste.study.command_line.request import Request, split_commands
from ajuste.study.command_line.study import adhoc_study


@example("ajuste scaling --on 1,2,4 --kernel debian:6.12 -- hackbench groups=2")
@spread
def scaling(
    context: typer.Context,
    words: Annotated[
        list[str], typer.Argument(metavar="COMMAND [ARGUMENT]...", help="The command to measure, or a workload.")
    ],
    on: Annotated[str, option("Numbers of CPUs.", "N,...", "--on")] = "1,2,4",
    *,
    request: Annotated[Request, Only("kernel vm background metric min_effect confidence blocks max_time seed")],
    machines: Machines,
    fresh: options.Fresh = False,
    showing: Showing,
) -> int:
    """Measure how much faster a command is on more CPUs.

    Binds the command to some of the CPUs, and tells its speed-up and how much of it runs on one CPU only.
    """
    numbers = [int(word) if word.isdecimal() else 0 for word in on.split(",")]
    if min(numbers) < 1:
        raise RequestError("expected numbers of CPUs, such as 1,2,4", place=Place(f"--on {on}"))
    cpus = ",".join("+".join(map(str, range(number))) for number in numbers)
    request = replace(request, cpus=cpus, commands=split_commands(tuple(words)), name=request.name or "scaling")
    return measure(
        adhoc_study(request, catalogue(), parse_kernel=parse_spec),
        catalogue(),
        showing,
        named=command_line(context),
        run_options=machines.run_options(),
        anew=unless_going_on(fresh),
    )
