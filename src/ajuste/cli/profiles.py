"""What the profiles of a command line come to on the study's target, told before anything is measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ajuste.catalogue.loader import Catalogue
from ajuste.experiment import Means
from ajuste.model.error import RequestError
from ajuste.placement import placed_profiles
from ajuste.profile.placing import Placed
from ajuste.profile.source import FORMS
from ajuste.profile.words import notes_of
from ajuste.report.sheet import sheet
from ajuste.report.visible import Console, visible_line
from ajuste.study.schema import TargetTable


def placed(
    specs: Sequence[str], target: TargetTable, catalogue: Catalogue, means: Means, *, tell: bool
) -> tuple[Placed, ...]:
    """As ``placement.placed_profiles``; with ``tell`` what came of it is printed."""
    if not all(spec.strip() for spec in specs):
        raise RequestError("a profile is missing between commas", hint=f"expected {FORMS}")
    console = Console(file=sys.stderr)
    if console.is_terminal:
        with console.telling() as say:
            told = Means(
                means.home,
                means.jobs,
                means.snapshot,
                means.accept_risk,
                say,
            )
            found = placed_profiles(specs, target, catalogue, told)
    else:
        found = placed_profiles(specs, target, catalogue, means)
    if tell:
        with sheet(Console(file=sys.stdout)) as out:
            for note in notes_of(found):
                out.say(visible_line(note))
            out.blank()
    return found
