"""``ajuste plan``: what a study would do, without doing it."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import chosen_study
from ajuste.cli.options import Json, Kernel, Seed, StudyName
from ajuste.experiment import Means, resolved_study
from ajuste.home import home
from ajuste.planning import planned_study
from ajuste.report.plan_text import print_plan


def plan(study: StudyName, kernel: Kernel = None, seed: Seed = None, as_json: Json = False) -> None:
    """Show every write, command and trial of STUDY, and do nothing."""
    known = catalogue()
    chosen = chosen_study(study, known, kernel, seed)
    planned = planned_study(resolved_study(chosen, known, Means(home())), known)
    if as_json:
        typer.echo(planned.model_dump_json(indent=2))
    else:
        print_plan(planned, Console(file=sys.stdout))
