"""The reproducer: a study file whose trials have the very chance that shows what was found."""

from __future__ import annotations

from ajuste.model.wording import visible_line
from ajuste.study.schema import BudgetTable, ExpectedFigure, ExpectTable, Study
from ajuste.study.target import PerturbationTable
from ajuste_hunt.bench import Bench
from ajuste_hunt.chance import Chance
from ajuste_hunt.goal import STALL, Goal


def reproducer(bench: Bench, chance: Chance, goal: Goal, typical: float | None, named: str) -> tuple[Study, str]:
    """Return a study that shows it in its only trial, and what `ajuste run` cannot expect, if anything."""
    study = bench.resolved.study
    drawn = bench.perturbation(chance.seed)
    perturbation = PerturbationTable(
        entropy=drawn.entropy,
        environment_bytes=drawn.environment_bytes,
        start_delay_ns=drawn.start_delay_ns,
        kernel_sha256=bench.experiment.images[study.target.kernel].sha256
        if chance.pauses and study.target.kernel
        else "",
        pauses=chance.pauses,
    )
    workload = study.workload.model_copy(update={"console_failure": goal.pattern})
    expect, note = _expected(goal, typical, bench.resolved.names[0])
    return (
        study.model_copy(
            update={
                "name": f"{study.name}-found"[:60],
                "title": "",
                "question": f"Does it still show {visible_line(goal.text)}?",
                "notes": (f"Found by {visible_line(named)}",),
                "workload": workload,
                "target": study.target.model_copy(update={"perturbation": perturbation}),
                "budget": BudgetTable(min_blocks=1, max_blocks=1),
                "expect": expect,
            }
        ),
        note,
    )


def _expected(goal: Goal, typical: float | None, configuration: str) -> tuple[ExpectTable | None, str]:
    if goal.kind in ("exit", "hung", "dmesg"):
        return ExpectTable(stalls=0), ""
    if goal.metric == STALL:
        return None, f"`ajuste run` cannot expect {STALL}: it only repeats the trial."
    bound = goal.bound(typical)
    figure = ExpectedFigure(
        metric=goal.metric, configuration=configuration, **{"most" if goal.above else "least": bound}
    )
    return ExpectTable(stalls=0, figures=(figure,)), ""
