"""Plots as plotly itself reads them."""

from __future__ import annotations

import plotly.graph_objects as go

from ajuste.report.plots.plot import Plot


def checked(plot: Plot) -> go.Figure:
    """The figure of ``plot``. Raises ValueError where a property or value is none of plotly's."""
    return go.Figure(plot.figure)
