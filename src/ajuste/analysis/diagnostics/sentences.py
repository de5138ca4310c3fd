"""Sentences on what diagnostics found, and why a verdict holds all the same."""

from __future__ import annotations

from typing import Final

from ajuste.analysis.diagnostics.residuals import amount_in_words
from ajuste.model.wording import number
from ajuste_stats.diagnostics import Finding
from ajuste_stats.residuals import Residuals
from ajuste_stats.terms import Kind

MEASURES: Final[dict[Kind, str]] = {
    "unequal variance": "largest standard deviation over the smallest",
    "bimodality": "distance between the two groups",
    "outliers": "values far from all others",
    "order": "change from the first place of a block to the last",
    "drift": "change from the first block to the last",
    "autocorrelation": "correlation of a trial with the one before",
    "carry-over": "largest effect of the previous trial",
    "warm-up": "deviation of the first blocks",
}
"""The meaning of each finding's value."""


def describe(finding: Finding, residuals: Residuals, unit: str) -> tuple[str, str]:
    """Return what ``finding`` says, and why verdicts hold or do not; ``unit`` is that of the metric."""

    def words(figure: str) -> str:
        return amount_in_words(finding.figures[figure], residuals, unit)

    name, figures = finding.treatment, finding.figures
    match finding.kind:
        case "unequal variance":
            scale = " on a logarithmic scale" if residuals.scale == "ratio" else ""
            infinite = finding.value == float("inf")
            times = "only the former varies at all" if infinite else f"{number(finding.value)} times as much{scale}"
            return (
                f"{name} varies more than {finding.other}: {times}.",
                "Signs of differences assume that both have noise of one shape. Above twice the spread the interval is "
                "also as wide as normal noise needs.",
            )
        case "bimodality":
            return (
                f"The values of {name} fall into two groups, {words('apart')} apart; "
                f"{100 * figures['upper share']:.0f} % are in the upper one. A mean describes neither.",
                "The verdict is about the mean over both groups; its interval includes their distance.",
            )
        case "outliers":
            single = finding.value == 1
            noun, under, make = ("outlier", "", "it makes") if single else ("outliers", "most of them ", "they make")
            if not name:
                return "", ""
            return (
                f"{number(int(finding.value))} {noun} in {number(int(figures['values']))} values, {under}under {name}, "
                f"where {make} the standard deviation {number(figures['times as wide'])} times as large.",
                "They stay in every figure and widen the intervals.",
            )
        case "order":
            return (
                f"From the first place in a block to the last the level moves by {words('change')}.",
                "The order is drawn again for every block, so no configuration is favoured.",
            )
        case "drift":
            return (
                f"The level moved by {words('change')} from the first block to the last.",
                "Comparisons are within blocks, where drift has no time to act.",
            )
        case "autocorrelation":
            return _autocorrelation(finding, residuals)
        case "carry-over":
            off = amount_in_words(-figures["bias"], residuals, unit)
            return (
                f"The previous trial matters: after {name} the level is {words('effect')} away from the mean.",
                f"{name} never follows itself within a block, so it looks off by about {off}."
                if finding.verdict_affected
                else "The order is random, so the advantage of any configuration is smaller than the noise.",
            )
        case "warm-up":
            length = int(figures["blocks"])
            blocks = "The first block is" if length == 1 else f"The first {length} blocks are"
            return (
                f"{blocks} off by {words('off')} from what the later ones predict: the warm-up was too short.",
                f"All configurations of a block are equally warm; `warm_up = {length}` in [design] would leave these "
                "out.",
            )


def _autocorrelation(finding: Finding, residuals: Residuals) -> tuple[str, str]:
    rho, paired = finding.value, finding.figures["of pairs"]
    if len(residuals.names) < 2:
        why = "Nothing is compared."
    elif finding.verdict_affected:
        why = (
            f"Differences within blocks resemble those of the block before ({paired:.2f}): intervals may be too narrow."
        )
    else:
        why = f"Differences within blocks do not resemble those of the block before ({paired:.2f})."
    if rho <= 0:
        return f"A trial tends to differ from the one before it (correlation {rho:.2f}).", why
    values, independent = number(int(finding.figures["values"])), number(round(finding.figures["independent"]))
    return (
        f"A trial resembles the one before it (correlation {rho:.2f}): {values} trials carry as much information as "
        f"{independent} independent ones.",
        why,
    )
