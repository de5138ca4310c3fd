"""Effects of factors in the terminal: which matter, in which direction, how surely."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import FactorEffect
from ajuste.report.effect import effect_style, known
from ajuste.report.labels import Labels
from ajuste.report.sheet import INDENT, Sheet, plain_table
from ajuste.report.verdict_words import LOOKS, verdict_text
from ajuste.report.visible import visible_line

MOST_INTERACTIONS: Final = 12
"""Of more than these only interactions that are there, or are undecided, stand in the terminal."""


def effect_name(effect: FactorEffect, labels: Labels) -> str:
    """``nice 0 → 10``; of an interaction both steps with a cross between."""
    steps = zip(effect.factors, effect.against, effect.levels, strict=True)
    return " × ".join(
        f"{visible_line(factor)} {labels.level(factor, old)} → {labels.level(factor, new)}"
        for factor, old, new in steps
    )


def effects_of(results: Results, metric: str) -> tuple[FactorEffect, ...]:
    """The effects on one metric: main effects first, then interactions, each from the largest to the smallest."""
    mine = [effect for effect in results.effects if effect.metric == metric]
    return tuple(sorted(mine, key=lambda effect: (effect.kind != "main", -effect_size(effect))))


def effect_size(effect: FactorEffect) -> float:
    """How far it is from none, whatever the direction; for sorting effects on one metric."""
    estimate = known(effect.estimate)
    if estimate is None:
        return 0.0
    return max(estimate, 1 / estimate) if effect.scale == "ratio" else abs(estimate)


def print_factor_effects(out: Sheet, results: Results, labels: Labels) -> None:
    """A table for each metric; nothing where there are no effects of factors."""
    if not results.effects:
        return
    out.heading("Effects of the factors, each averaged over the levels of all others")
    for metric in results.metrics:
        found = effects_of(results, metric.name)
        if found:
            _print_metric(out, results, metric, found, labels)


def _print_metric(
    out: Sheet, results: Results, metric: Metric, found: tuple[FactorEffect, ...], labels: Labels
) -> None:
    styles = effect_style(found, metric.unit)
    interactions = [effect for effect in found if effect.kind == "interaction"]
    few = len(interactions) <= MOST_INTERACTIONS
    shown = [e for e in found if few or e.kind == "main" or e.verdict not in ("equivalent", "undecided")]
    out.blank()
    out.say(visible_line(metric.title), style="bold", indent=INDENT)
    table = plain_table()
    for head, justify in (("", "left"), ("effect", "right"), ("interval", "right"), ("", "left")):
        table.add_column(head, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for effect in shown:
        style = styles[effect.scale]
        word = Text(verdict_text(effect, results.smallest_effect), style=LOOKS[effect.verdict].style)
        name = Text(effect_name(effect, labels))
        table.add_row(name, Text(style.estimate(effect)), Text(style.interval(effect)), word)
    out.table(table, indent=INDENT)
    if len(shown) < len(found):
        out.say(f"{len(found) - len(shown)} more interactions are in the report.", indent=INDENT, style="dim")
