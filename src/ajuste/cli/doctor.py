"""``ajuste doctor``: how quiet this machine is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ajuste.cli.doctor_sheet import print_diagnosis
from ajuste.cli.example import example
from ajuste.cli.options import Json
from ajuste.doctor.diagnosis import diagnose
from ajuste.doctor.measuring import FULL, QUICK, measure
from ajuste.report.visible import Console
from ajuste.target.host import HostTarget
from ajuste.target.machine_lock import MachineLock
from ajuste.target.target import Say


@example("ajuste doctor --quick")
def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Take five seconds instead of half a minute.")] = False,
    as_json: Json = False,
) -> None:
    """Find out how quiet this machine is: what can be measured here, what disturbs, and what to do.

    Measures timers, other load, stolen time and the spread of a fixed job, and changes nothing. No experiment may go on
    on this machine meanwhile: they would disturb each other.
    """
    with MachineLock("measurement"), _saying() as say, HostTarget() as target:
        measured = measure(target, QUICK if quick else FULL, say)
    diagnosis = diagnose(measured)
    if as_json:
        typer.echo(diagnosis.model_dump_json(indent=2))
    else:
        print_diagnosis(diagnosis, Console(file=sys.stdout))


@contextmanager
def _saying() -> Iterator[Say]:
    """Shows on a terminal what happens now, and elsewhere nothing; nothing remains of it in the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.telling() as say:
        yield say
