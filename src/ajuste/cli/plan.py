"""``ajuste plan``: what a study would do, without doing it."""

from __future__ import annotations

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import chosen_study
from ajuste.cli.example import example
from ajuste.cli.options import Json, Kernel, Seed, StudyName, Target
from ajuste.cli.planned import show_plan
from ajuste.experiment import Means
from ajuste.home import home


@example("ajuste plan granularity", "ajuste plan my-study.toml --json")
def plan(
    study: StudyName, kernel: Kernel = None, seed: Seed = None, target: Target = None, as_json: Json = False
) -> None:
    """Show every write, command and trial of STUDY, and do nothing."""
    known = catalogue()
    show_plan(chosen_study(study, known, kernel, seed, target), known, Means(home()), as_json=as_json)
