"""Modelled time in its parts: a bar for each configuration, of what is waited for."""

from __future__ import annotations

from typing import Final

from ajuste.model.modelled import ModelledComparison
from ajuste.model.wording import amount
from ajuste.report.modelled import WORDS
from ajuste.report.palette import variable
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, plain

_COLOURS: Final = {
    "instructions": "still",
    "L2": "series-6",
    "LLC": "series-1",
    "memory": "series-2",
    "other nodes": "series-5",
    "TLB": "series-3",
    "branches": "series-4",
}


def modelled_plot(modelled: ModelledComparison, called: tuple[str, str], name: str) -> Plot | None:
    """The workload's time under both; ``None`` where it has none."""
    row = next((part for part in modelled.parts if part.name == "workload"), None)
    if row is None:
        return None
    machine = modelled.machine
    both = (machine.parts(row.own_instructions, row.own), machine.parts(row.baseline_instructions, row.baseline))
    names = [called[1], called[0]]
    traces = []
    begins = [0.0, 0.0]
    shown = [part for part in WORDS if any(one.seconds for own in both for one in own if one.name == part)]
    for part in shown:
        lengths = [next(one.seconds for one in own if one.name == part) * 1e3 for own in both]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "base": list(begins),
                "x": lengths,
                "y": [0, 1],
                "width": 0.6,
                "marker": {"color": variable(_COLOURS[part])},
                "hoverinfo": "text",
                "hovertext": [
                    f"<b>{plain(name)}</b><br>{WORDS[part]}: {amount(length / 1e3, 's')}"
                    for name, length in zip(names, lengths, strict=True)
                ],
            }
        )
        begins = [begin + length for begin, length in zip(begins, lengths, strict=True)]
    return Plot(
        name=name,
        title=f"Modelled time of the workload on {machine.name}, in ms",
        description=f"On {machine.title} the workload's modelled time is {amount(begins[1] / 1e3, 's')} under "
        f"{called[0]} and {amount(begins[0] / 1e3, 's')} under {called[1]}.",
        figure=figure(
            traces,
            barmode="overlay",
            xaxis={"range": [0, 1.05 * max(begins)], "title": {"text": "modelled time, ms"}},
            yaxis=level_axis(names, width=24),
        ),
        height=190,
        legend=tuple(LegendEntry(WORDS[part], "square", _COLOURS[part]) for part in shown),
        legend_title="What it waits for (modelled)",
        wide=True,
    )
