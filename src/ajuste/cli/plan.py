"""``ajuste plan``: what a study would do, without doing it."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.cli.choice import chosen_study
from ajuste.cli.options import Json, Kernel, Seed, StudyName
from ajuste.experiment import Means, resolved_study
from ajuste.home import home
from ajuste.planning import planned_study
from ajuste.report.plan_text import print_plan
from ajuste.study.resolved import ResolvedStudy
from ajuste.target.caller import user_here
from ajuste.target.current import current_values
from ajuste.target.host import HostTarget


def plan(study: StudyName, kernel: Kernel = None, seed: Seed = None, as_json: Json = False) -> None:
    """Show every write, command and trial of STUDY, and do nothing."""
    known = catalogue()
    chosen = chosen_study(study, known, kernel, seed)
    resolved = resolved_study(chosen, known, Means(home()))
    if chosen.target.kind == "host":
        planned = planned_study(resolved, known, _values_here(resolved, known), user_here())
    else:
        planned = planned_study(resolved, known)
    if as_json:
        typer.echo(planned.model_dump_json(indent=2))
    else:
        print_plan(planned, Console(file=sys.stdout))


def _values_here(resolved: ResolvedStudy, known: Catalogue) -> dict[str, str]:
    """What the tunables that would be written are now, or why that cannot be said."""
    names = dict.fromkeys(write.tunable for one in resolved.configurations for write in one.writes)
    if not names:
        return {}
    with HostTarget() as host:
        found = current_values(host, [known.find_tunable(name) for name in names])
    return {name: found[name].problem if (value := found[name].value) is None else value for name in names}
