"""The design of a study in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.design.ablation import ORDERS, is_exact
from ajuste.model.configuration import Configuration
from ajuste.study.ablation import lines_of
from ajuste.study.schema import Study


def design_words(study: Study, configurations: Sequence[Configuration]) -> str:
    """How the trials are ordered, what later blocks hold, and what that is good for."""
    if len(configurations) < 2:
        return "One configuration, again and again; nothing is compared."
    return " ".join(
        (
            *_screening(study, configurations),
            *_ablation(study),
            _order(study),
            *_allocation(study, len(configurations)),
            _WITHIN,
        )
    )


_WITHIN = "Configurations are compared within blocks, so that what drifts between blocks does not count."


def _screening(study: Study, configurations: Sequence[Configuration]) -> Sequence[str]:
    if study.design.combine != "screening":
        return ()
    varied = [factor for factor in study.factors if len(factor.levels) > 1]
    three = len(varied[0].levels) == 3
    kind = "a definitive screening design" if three else "a Plackett-Burman design with its fold-over"
    return (
        f"Screening of {len(varied)} factors in {len(configurations)} configurations: {kind}. Main effects are not "
        f"mixed up with each other or with interactions of two factors; they are with interactions of three. "
        f"Interactions themselves are not estimated: several of them always show as one.",
    )


def _ablation(study: Study) -> Sequence[str]:
    if study.design.combine != "ablation":
        return ()
    lines = len(lines_of(study))
    if is_exact(lines):
        return (f"Ablation of {lines} lines: every combination of them in each block; shares are Shapley values.",)
    return (
        f"Ablation of {lines} lines: each block has nothing, the whole, each line alone and left out, and the way from "
        f"nothing to the whole in one of {ORDERS} random orders and in its reverse; shares are Shapley values, exactly "
        f"where no three lines interact, otherwise as the mean over these orders.",
    )


def _order(study: Study) -> str:
    of = "of its configurations" if study.allocation == "refine" else "of every configuration"
    if study.design.order == "latin":
        return (
            f"Blocks in Latin squares: each block has one trial {of}, and over as many blocks as it "
            "has trials each configuration stands once at each place and follows every other one equally often; which "
            "stands where is drawn anew for each square."
        )
    return f"Randomised blocks: each block has one trial {of}, in an order drawn anew."


def _allocation(study: Study, count: int) -> Sequence[str]:
    if study.allocation == "all" or count < 3:
        return ()
    if study.allocation == "refine":
        return (
            f"The first {study.budget.min_blocks} blocks hold a coarse grid of levels; from then on a block holds the "
            f"baseline and the points at which the surface is known worst, new ones where it bends and again those "
            f"where the noise is large.",
        )
    return (
        f"After {study.budget.min_blocks} blocks, a block holds the baseline and what is still undecided; a "
        f"configuration that is decided keeps the blocks it has.",
    )
