"""The metrics of a study that are shares of the CPU. They are measured only where the study names one of them."""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Metric
from ajuste.parse.share import CPU_SHARE, background_share
from ajuste.study.job import BackgroundTable
from ajuste.study.schema import Study

UNIT: Final = "% CPU"
"""Not just %: a difference of shares would read like a change relative to the baseline."""


def share_metrics(study: Study) -> tuple[Metric, ...]:
    """The workload's share and that of each background load, in the study's order."""
    own = Metric(
        name=CPU_SHARE,
        title="Share of the CPU",
        unit=UNIT,
        direction="none",
        scale="difference",
        what="CPU time that the workload got, by the time for which it ran: 100 % is one whole CPU.",
    )
    loads = study.workload.background
    return (own, *(_of_load(number, load) for number, load in enumerate(loads, 1)))


def wants_shares(study: Study) -> bool:
    """Whether the study asks for any of them."""
    asked = (*study.analysis.metrics, *(study.analysis.describe or ()))
    return any(name.startswith(CPU_SHARE) for name in asked)


def _of_load(number: int, load: BackgroundTable) -> Metric:
    what = load.kind or (load.command or ("",))[0]
    return Metric(
        name=background_share(number),
        title=f"Share of background load {number} ({what})",
        unit=UNIT,
        direction="none",
        scale="difference",
        what="CPU time that this load got from its start to the workload's end, by that time: 100 % is one whole CPU.",
    )
