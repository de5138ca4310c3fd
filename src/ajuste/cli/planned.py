"""Showing what a study would do; for ``plan`` and ``compare --dry-run``."""

from __future__ import annotations

import sys

import typer

from ajuste.catalogue.loader import Catalogue
from ajuste.experiment import Means, resolved_study
from ajuste.planning import planned_study
from ajuste.report.plan_text import print_plan
from ajuste.report.visible import Console
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste.target.caller import user_here
from ajuste.target.current import current_values
from ajuste.target.host import HostTarget


def show_plan(study: Study, catalogue: Catalogue, means: Means, *, as_json: bool) -> None:
    """Print every write, command and trial of ``study``, and do nothing."""
    resolved = resolved_study(study, catalogue, means)
    if study.target.kind == "host":
        planned = planned_study(resolved, catalogue, _values_here(resolved, catalogue), user_here())
    else:
        planned = planned_study(resolved, catalogue)
    if as_json:
        typer.echo(planned.model_dump_json(indent=2))
    else:
        print_plan(planned, Console(file=sys.stdout))


def _values_here(resolved: ResolvedStudy, catalogue: Catalogue) -> dict[str, str]:
    """What the tunables that would be written are now, or why that cannot be said."""
    names = dict.fromkeys(write.tunable for one in resolved.configurations for write in one.writes)
    if not names:
        return {}
    with HostTarget() as host:
        found = current_values(host, [catalogue.find_tunable(name) for name in names])
    return {name: found[name].problem if (value := found[name].value) is None else value for name in names}
