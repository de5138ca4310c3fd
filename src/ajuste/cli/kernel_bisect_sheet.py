"""How ``ajuste kernel bisect`` looks on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from ajuste.design.bisection import Outcome
from ajuste.kernel.bisect.found import Found, Step
from ajuste.model.metric import Scale
from ajuste.report.effect import EffectStyle, effect_style
from ajuste.report.format import count_of
from ajuste.report.sheet import INDENT, plain_table, sheet
from ajuste.report.visible import visible_line

_WIDEST: Final = 32
"""Of the column of kernels: longer names are broken, so that there is room for the figures."""

_SAID: Final[dict[Outcome, str]] = {
    "there": "there",
    "absent": "not there",
    "undecided": "undecided",
    "unusable": "not measured",
    "impossible": "no such kernel",
}


def print_found(found: Found, console: Console) -> None:
    """The answer, then every step with its verdict and where its report is."""
    with sheet(console) as out:
        out.say(Text(visible_line(found.answer()), style="bold"))
        out.blank()
        out.say(visible_line(f"{found.metric} in the study {found.study}, each kernel against the good one"))
        table = plain_table()
        widest = max(len(word) for step in found.steps for word in visible_line(step.candidate).split(" "))
        for title in ("step", "kernel", "effect", "interval", "blocks", "difference"):
            table.add_column(title, overflow="fold", min_width=min(widest, _WIDEST) if title == "kernel" else None)
        styles = effect_style([one.verdict for one in found.steps if one.verdict], _unit(found))
        for number, step in enumerate(found.steps):
            table.add_row(*_cells(number, step, styles))
        out.table(table)
        for step in found.steps:
            if step.note:
                out.say(visible_line(f"{step.candidate}: {step.note}"), style="dim", indent=INDENT)
        out.blank()
        for step in found.steps:
            if step.report:
                out.line(f"{visible_line(step.candidate)}: {step.report}")
        if found.kind != "versions":
            built = sum(step.kernel.startswith("mine:bisect-") for step in found.steps)
            out.say(
                f"{count_of(built, 'kernel')} built for this: see ajuste kernel list, ajuste kernel remove", style="dim"
            )


def _cells(number: int, step: Step, styles: Mapping[Scale, EffectStyle]) -> list[Text]:
    name = "ends" if number == 0 else str(number)
    if step.verdict is None:
        return [Text(text) for text in (name, visible_line(step.candidate), "", "", "", _SAID[step.outcome])]
    style = styles[step.verdict.scale]
    words = (
        name,
        visible_line(step.candidate),
        style.estimate(step.verdict),
        style.interval(step.verdict),
        str(step.verdict.blocks),
        _SAID[step.outcome],
    )
    return [Text(word) for word in words]


def _unit(found: Found) -> str:
    return next((step.verdict.unit for step in found.steps if step.verdict), "")
