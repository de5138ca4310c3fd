"""``ajuste doctor``: how quiet this machine is."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ajuste.cli.options import Json, Wait, example, wait_seconds
from ajuste.executor.host.adoption import adoptions
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.machine_lock import MachineLock
from ajuste.model.wording import visible_line
from ajuste.report.console import Activity, Console
from ajuste.report.terminal import print_report
from ajuste_doctor.diagnosis import diagnose
from ajuste_doctor.measuring import FULL, QUICK, measure
from ajuste_doctor.report import diagnosis_report


@example("ajuste doctor --quick")
def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Measure for 5 s instead of 30 s.")] = False,
    wait: Wait = None,
    as_json: Json = False,
) -> None:
    """Check how quiet this machine is: what you can measure, what disturbs, and what to do.

    Measures timers, other load, stolen time and the spread of a fixed job. Changes nothing. Run no experiment
    at the same time: they would disturb each other.
    """
    with (
        Activity() as activity,
        MachineLock("measurement", wait_s=wait_seconds(wait), say=activity.say),
        HostExecutor() as target,
    ):
        measured = measure(target, QUICK if quick else FULL, activity.say)
    diagnosis = diagnose(measured)
    if as_json:
        typer.echo(diagnosis.model_dump_json(indent=2))
    else:
        print_report(diagnosis_report(diagnosis), Console(file=sys.stdout))
        for adoption in adoptions():
            typer.echo(visible_line(str(adoption)))
