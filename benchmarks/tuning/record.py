"""Records the surface of hackbench-granularity: ``python -m benchmarks.tuning.record``.

Measures each of 20 × 20 points once, under the virtual clock, in the ordinary store: interrupted, it goes on later. A
number after it says how many guests run at once.
"""

from __future__ import annotations

import json
import sys

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.report.progress import Progress
from ajuste.run.experiment import conduct, prepare
from ajuste.run.testbed import RunOptions
from ajuste.store.store import Store
from ajuste.study.builtin import find_study
from ajuste.study.read import read_study
from ajuste.study.schema import BudgetTable, DesignTable, Study
from benchmarks.tuning.surfaces import RECORDED, SIDE


def surface_study() -> Study:
    """The built-in study with 20 levels of each of its settings, and one block."""
    study = read_study(find_study("hackbench-granularity"), catalogue(), parse_kernel=parse_spec)
    levels = tuple(str(round(10**6 * 30 ** (place / (SIDE - 1)))) for place in range(SIDE))
    factors = tuple(
        factor.model_copy(update={"levels": levels, "baseline": None, "range": None, "points": None, "scale": None})
        for factor in study.factors
    )
    budget = BudgetTable(min_blocks=1, max_blocks=1, max_minutes=1000)
    analysis = study.analysis.model_copy(update={"explain": False})
    design = DesignTable(allocation="all")
    return study.model_copy(update={"factors": factors, "budget": budget, "design": design, "analysis": analysis})


def main(jobs: int) -> None:
    """Measure what is missing, ``jobs`` guests at once, and write the file."""
    study, means = surface_study(), RunOptions(home(), jobs=jobs)
    with Progress(min_blocks=1, max_blocks=1) as progress, Store(means.home.store_url) as store:
        run = conduct(prepare(study, catalogue(), means), store, progress, means, named="hackbench-surface")
        measured = {
            trial.slot.configuration: trial.metrics["elapsed"] for trial in store.trials(run) if trial.status == "ok"
        }
    resolved = prepare(study, catalogue(), means).resolved
    document = {
        "factors": [factor.model_dump(mode="json") for factor in resolved.factors],
        "kernel": run.environment.get(study.target.kernel or "", {}).get("kernel"),
        "workload": dict(study.workload.parameters),
        "seed": study.design.seed,
        "unit": "s",
        "values": [round(measured[name], 9) for name in resolved.names],
    }
    RECORDED.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
