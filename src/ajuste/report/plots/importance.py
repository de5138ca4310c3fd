"""How much each factor of a search matters, with intervals."""

from __future__ import annotations

from ajuste.model.metric import Metric
from ajuste.model.tuning import Tuning
from ajuste.report.palette import variable
from ajuste.report.plots.plot import Plot, figure, level_axis, plain


def importance_plot(tuning: Tuning, metric: Metric, name: str) -> Plot | None:
    """``None`` where nothing is known of it."""
    if not tuning.importance:
        return None
    own = list(reversed(tuning.importance))
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": [100 * one.share for one in own],
        "y": list(range(len(own))),
        "width": 0.5,
        "marker": {"color": variable("series-1")},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [100 * (one.high - one.share) for one in own],
            "arrayminus": [100 * (one.share - one.low) for one in own],
            "color": variable("ink"),
            "thickness": 1.5,
        },
        "hoverinfo": "text",
        "hovertext": [
            f"<b>{plain(one.factor)}</b><br>{100 * one.share:.0f} % ({100 * one.low:.0f} to {100 * one.high:.0f} %)"
            for one in own
        ],
    }
    return Plot(
        name=name,
        title="How much each setting matters, in % of what varies",
        description=f"{metric.title}: for each setting the share of the model's variation that goes away if it is held "
        "fixed, with 95 % intervals.",
        figure=figure(
            [trace],
            xaxis={"range": [0, 105], "title": {"text": "share of the variation"}},
            yaxis=level_axis([one.factor for one in own], width=32),
        ),
        height=90 + 46 * len(own),
        wide=True,
    )
