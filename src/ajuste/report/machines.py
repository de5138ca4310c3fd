"""Machines side by side: the effects in the blocks of each, and whether they say the same."""

from __future__ import annotations

from typing import Final

from ajuste.model.machine_effect import AcrossMachines, Agreement, MachineEffect
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.report.effect import EffectStyle, effect_style
from ajuste.report.format import NOTHING
from ajuste.report.labels import Labels
from ajuste.report.listing import Group, Line, Listing
from ajuste.report.rows import deciding_metrics
from ajuste.report.verdict_words import LOOKS

_LEAD: Final = (
    "Each block was measured on one machine and is compared within itself, so that no machine's speed is in any effect."
)
_SOURCE: Final = (
    "Whether the effects are equal: R. A. Alexander and D. M. Govern, A New and Simpler Approximation for ANOVA Under "
    "Variance Heterogeneity, Journal of Educational Statistics 19(2), 1994."
)
_COLUMNS: Final = ("Blocks", "Effect", "Interval", "Verdict there")
_SUMMARY: Final[dict[Agreement, str]] = {
    "depends": "The machines do not agree, so that no verdict is right for all of them.",
    "differ": "The machines agree on the verdicts, but not on how large the effects are.",
    "unknown": "There are too few blocks on more than one machine to tell whether the effects are the same on all.",
    "alike": "No difference between the machines' effects is seen.",
}


def machines_listing(results: Results, labels: Labels) -> Listing | None:
    """The deciding effects by machine; ``None`` where there is one machine only."""
    deciding = deciding_metrics(results)
    shown = [one for one in results.machines if one.metric in deciding]
    if not shown:
        return None
    metrics = {metric.name: metric for metric in results.metrics}
    groups = tuple(_group(results, one, metrics[one.metric], labels) for one in shown)
    worst = next(agreement for agreement in _SUMMARY if any(one.agreement == agreement for one in shown))
    lead = f"{_LEAD} {_SUMMARY[worst]}"
    return Listing("machines", "Machine by machine", lead, _COLUMNS, groups, _SOURCE, heading="Machine")


def _group(results: Results, across: AcrossMachines, metric: Metric, labels: Labels) -> Group:
    verdict = next(v for v in results.verdicts if (v.configuration, v.metric) == (across.configuration, across.metric))
    own = [_as_verdict(verdict, one) for one in across.machines]
    style = effect_style(own, metric.unit)
    marked = across.agreement in ("depends", "differ")
    configuration = next(c for c in results.configurations if c.name == across.configuration)
    tested = "" if across.p_value is None else f" (p = {across.p_value:.2g} that all are equal)"
    return Group(
        f"{metric.title}, {labels.short(configuration)}{tested}",
        tuple(
            Line(one.machine, _cells(one, said, style[said.scale]), marked=marked)
            for one, said in zip(across.machines, own, strict=True)
        ),
    )


def _as_verdict(verdict: Verdict, one: MachineEffect) -> Verdict:
    return verdict.model_copy(
        update={"estimate": one.estimate, "low": one.low, "high": one.high, "verdict": one.verdict}
    )


def _cells(one: MachineEffect, said: Verdict, style: EffectStyle) -> tuple[str, ...]:
    interval = NOTHING if one.low is None and one.high is None else style.interval(said)
    return (str(one.blocks), style.estimate(said), interval, f"{LOOKS[one.verdict].sign} {one.verdict}")
