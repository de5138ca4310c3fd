"""The tables that a study may ask for besides the verdicts."""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Prediction, Results, ThreeSigma
from ajuste.model.verdict import AcrossMachines, Agreement, MachineEffect, Verdict
from ajuste.report.format import NOTHING, ShownNumber, count_of, shown_as
from ajuste.report.labels import Labels
from ajuste.report.listing import Group, Listing, ListingLine
from ajuste.report.metric_table import deciding_metrics, metric_shown
from ajuste.report.proofs import kernel_options_listing
from ajuste.report.verdicts import LOOKS, EffectStyle, effect_style


def listings_of(results: Results, labels: Labels) -> tuple[Listing, ...]:
    """Those that there are, in the order to be shown."""
    found = (
        kernel_options_listing(results),
        machines_listing(results, labels),
        predictions_listing(results, labels),
        three_sigma_listing(results, labels),
    )
    return tuple(listing for listing in found if listing is not None)


# What a rule of the kernel predicts, beside what was measured.


_COLUMNS: Final = ("Predicted", "Measured", "Residual", "Because")


def predictions_listing(results: Results, labels: Labels) -> Listing | None:
    """The table, or ``None`` if no rule was asked for or it says nothing of this study."""
    groups = tuple(
        Group(f"{metric.title}{f', in {shown.unit}' if (shown := prediction_shown(own, metric)).unit else ''}", lines)
        for metric in results.metrics
        if (own := predictions_of(results, metric)) and (lines := _lines(results, own, metric, labels))
    )
    if results.rule is None or not groups:
        return None
    return Listing(
        "predictions",
        f"Predicted: {results.rule.title[:1].lower()}{results.rule.title[1:]}",
        results.rule.says,
        _COLUMNS,
        groups,
        f"Source: {results.rule.source}.",
        optional=True,
    )


def predictions_of(results: Results, metric: Metric) -> tuple[Prediction, ...]:
    """The predictions of one metric, in the order of the configurations."""
    order = {configuration.name: place for place, configuration in enumerate(results.configurations)}
    own = (p for p in results.predictions if p.metric == metric.name and p.configuration in order)
    return tuple(sorted(own, key=lambda p: order[p.configuration]))


def prediction_shown(predictions: tuple[Prediction, ...], metric: Metric) -> ShownNumber:
    """One unit for predicted and measured figures."""
    residuals = [abs(p.residual) for p in predictions if p.residual]
    return shown_as(
        [v for p in predictions for v in (p.low, p.high, p.measured) if v is not None], metric.unit, residuals
    )


def predicted_text(prediction: Prediction, shown: ShownNumber) -> str:
    """One figure, or from … to."""
    if prediction.low == prediction.high:
        return shown.text(prediction.low)
    return f"{shown.text(prediction.low)} … {shown.text(prediction.high)}"


def residual_text(prediction: Prediction, shown: ShownNumber) -> str:
    if prediction.residual is None:
        return NOTHING
    within = prediction.residual == 0 and prediction.low < prediction.high
    return "within" if within else shown.signed(prediction.residual)


def _lines(results: Results, own: tuple[Prediction, ...], metric: Metric, labels: Labels) -> tuple[ListingLine, ...]:
    shown = prediction_shown(own, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        ListingLine(
            name=labels.short(configurations[prediction.configuration]),
            cells=(
                predicted_text(prediction, shown),
                NOTHING if prediction.measured is None else shown.text(prediction.measured),
                residual_text(prediction, shown),
                prediction.why,
            ),
        )
        for prediction in own
    )


# What the 3-sigma rule would have said, beside the verdicts.


_LEAD: Final = (
    "The rule calls two configurations different if their means differ by more than three standard deviations of the "
    "difference, either between two single values or between two means."
)
_SOURCE: Final = 'The rule: F. Pukelsheim, "The Three Sigma Rule", The American Statistician 48(2), 1994.'
_THREE_SIGMA_COLUMNS: Final = (
    "Mean",
    "± 3 sd of single values",
    "± 3 sd of the mean",
    "Rule, single values",
    "Rule, means",
    "Verdict",
)


def three_sigma_listing(results: Results, labels: Labels) -> Listing | None:
    """The table, or ``None`` if the study did not ask for it."""
    groups = tuple(
        Group(f"{metric.title}{f', in {shown.unit}' if (shown := metric_shown(results, metric)).unit else ''}", lines)
        for metric in results.metrics
        if (lines := _three_sigma_lines(results, metric, labels))
    )
    if not groups:
        return None
    disagreeing = sum(row.disagrees for row in results.three_sigma)
    cases = f"disagree in {count_of(disagreeing, 'case')}" if disagreeing else "agree here"
    said = f"Rule and verdict {cases}."
    return Listing(
        "three-sigma", "What the 3-sigma rule says", f"{_LEAD} {said}", _THREE_SIGMA_COLUMNS, groups, _SOURCE
    )


def _three_sigma_lines(results: Results, metric: Metric, labels: Labels) -> tuple[ListingLine, ...]:
    shown = metric_shown(results, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        ListingLine(
            name=labels.short(configurations[row.configuration]),
            cells=_cells(row, shown),
            remark=row.why,
            marked=row.disagrees,
        )
        for row in results.three_sigma
        if row.metric == metric.name and row.configuration in configurations
    )


def _cells(row: ThreeSigma, shown: ShownNumber) -> tuple[str, ...]:
    verdict = "baseline" if row.verdict is None else f"{LOOKS[row.verdict].sign} {row.verdict}"
    return (
        shown.text(row.mean),
        _range(row.values, shown),
        _range(row.means, shown),
        _word(row.values_differ),
        _word(row.means_differ),
        verdict,
    )


def _range(ends: tuple[float, float] | None, shown: ShownNumber) -> str:
    return NOTHING if ends is None else f"{shown.text(ends[0])} … {shown.text(ends[1])}"


def _word(differs: bool | None) -> str:
    return NOTHING if differs is None else "different" if differs else "not different"


# Machines side by side: the effects in the blocks of each, and whether they say the same.


_MACHINES_LEAD: Final = (
    "Each block ran on one machine and is compared within itself, so a machine's speed affects no effect."
)
_MACHINES_SOURCE: Final = (
    "Whether the effects are equal: R. A. Alexander and D. M. Govern, A New and Simpler Approximation for ANOVA Under "
    "Variance Heterogeneity, Journal of Educational Statistics 19(2), 1994."
)
_MACHINES_COLUMNS: Final = ("Blocks", "Effect", "Interval", "Verdict there")
_SUMMARY: Final[dict[Agreement, str]] = {
    "depends": "The machines disagree: no verdict applies to all of them.",
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
    lead = f"{_MACHINES_LEAD} {_SUMMARY[worst]}"
    return Listing(
        "machines", "Results per machine", lead, _MACHINES_COLUMNS, groups, _MACHINES_SOURCE, heading="Machine"
    )


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
            ListingLine(one.machine, _machines_cells(one, said, style[said.scale]), marked=marked)
            for one, said in zip(across.machines, own, strict=True)
        ),
    )


def _as_verdict(verdict: Verdict, one: MachineEffect) -> Verdict:
    return verdict.model_copy(
        update={"estimate": one.estimate, "low": one.low, "high": one.high, "verdict": one.verdict}
    )


def _machines_cells(one: MachineEffect, said: Verdict, style: EffectStyle) -> tuple[str, ...]:
    interval = NOTHING if one.low is None and one.high is None else style.interval(said)
    return (str(one.blocks), style.estimate(said), interval, f"{LOOKS[one.verdict].sign} {one.verdict}")
