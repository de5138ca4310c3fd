"""``ajuste plan``: what a study would do, without doing it."""

from __future__ import annotations

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import chosen_study, require_disk_wanted
from ajuste.cli.example import example
from ajuste.cli.options import Disk, Json, Kernel, Parameter, Seed, StudyName, Target, Without
from ajuste.cli.planned import show_plan
from ajuste.experiment import Means
from ajuste.home import home
from ajuste.target.disk import disk_in_plan


@example(
    "ajuste plan granularity",
    "ajuste plan my-study.toml --json",
    "ajuste plan hackbench-granularity --parameter transport=pipes",
    "ajuste plan linpack-isolation --without 'isolation=in the kernel, interrupts off'",
)
def plan(
    study: StudyName,
    kernel: Kernel = None,
    seed: Seed = None,
    target: Target = None,
    parameter: Parameter = None,
    without: Without = None,
    disk: Disk = None,
    as_json: Json = False,
) -> None:
    """Show every write, command and trial of STUDY, and do nothing."""
    known = catalogue()
    chosen = chosen_study(study, known, kernel, seed, target, parameter, lambda _: disk_in_plan(disk), without)
    require_disk_wanted(chosen, disk)
    show_plan(chosen, known, Means(home()), as_json=as_json)
